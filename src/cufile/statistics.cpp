#include "cufile/statistics.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "os/descriptor.hpp"

namespace straightway::cufile {
namespace {

void grow(std::uint64_t& counter, std::uint64_t by) {
  if (by != 0) std::atomic_ref(counter).fetch_add(by, std::memory_order_relaxed);
}

// Not below 0: what is taken away may have been added while nothing was counted, or before a reset.
void shrink(std::uint64_t& counter, std::uint64_t by) {
  std::atomic_ref place(counter);
  std::uint64_t seen = place.load(std::memory_order_relaxed);
  while (!place.compare_exchange_weak(seen, seen - std::min(seen, by), std::memory_order_relaxed)) {
  }
}

std::uint64_t load(std::uint64_t& counter) {
  return std::atomic_ref(counter).load(std::memory_order_relaxed);
}

// A window of the past is closed by the first who comes in a later second.
void add_to_window(Window& window, const CountedCall& call) {
  const std::uint64_t now = this_second();
  std::atomic_ref second(window.second);
  std::uint64_t seen = second.load(std::memory_order_relaxed);
  if (seen != now && second.compare_exchange_strong(seen, now)) {
    const auto close = [&](std::uint64_t& last, std::uint64_t& current) {
      const std::uint64_t value = std::atomic_ref(current).exchange(0, std::memory_order_relaxed);
      std::atomic_ref(last).store(seen + 1 == now ? value : 0, std::memory_order_relaxed);
    };
    close(window.last_bytes, window.bytes);
    close(window.last_operations, window.operations);
    close(window.last_busy_us, window.busy_us);
  }
  grow(window.bytes, call.requested_bytes);
  grow(window.operations, 1);
  grow(window.busy_us, call.duration_us);
}

struct Rate {
  std::uint64_t bytes, operations, busy_us;
};

// Of the last whole second.
Rate rate_of(const Window& window, std::uint64_t now) {
  if (window.second == now) {
    return {window.last_bytes, window.last_operations, window.last_busy_us};
  }
  if (window.second + 1 == now) return {window.bytes, window.operations, window.busy_us};
  return {};
}

std::uint64_t mean(std::uint64_t sum, const abi::Counter& counter) {
  const std::uint64_t n = counter.ok + counter.err;
  return n == 0 ? 0 : sum / n;
}

bool is_read(Flow flow) { return flow == Flow::read || flow == Flow::readv; }
bool is_batch(Flow flow) { return flow == Flow::batch_read || flow == Flow::batch_write; }

// Where the figures of a flow stand in level 1.
struct FlowFields {
  abi::Counter abi::Level1::* calls;
  std::uint64_t abi::Level1::* bytes;
  std::uint64_t abi::Level1::* latency_sum_us;
};

FlowFields fields_of(Flow flow) {
  using L = abi::Level1;
  switch (flow) {
    case Flow::read:
      return {&L::read, &L::read_bytes, &L::read_latency_sum_us};
    case Flow::write:
      return {&L::write, &L::write_bytes, &L::write_latency_sum_us};
    case Flow::readv:
      return {&L::readv, &L::readv_bytes, &L::readv_latency_sum_us};
    case Flow::writev:
      return {&L::writev, &L::writev_bytes, &L::writev_latency_sum_us};
    case Flow::batch_read:
      return {nullptr, &L::batch_read_bytes, nullptr};
    case Flow::batch_write:
      return {nullptr, &L::batch_write_bytes, nullptr};
  }
  return {};
}

void count_gpu(abi::GpuDirection& gpu, const CountedCall& call) {
  grow(gpu.bytes, call.requested_bytes);
  grow(gpu.duration_us, call.duration_us);
  grow(gpu.n, call.parts.n);
  grow(gpu.p2pdma, call.parts.p2pdma);
  grow(gpu.nvfs, call.parts.nvfs);
  grow(gpu.posix, call.parts.posix);
  grow(gpu.unaligned, call.unaligned_parts);
}

// Whether this word of the block is part of a GPU's name, which counts nothing.
bool names_gpu(std::size_t word) {
  constexpr std::size_t begin = offsetof(Published, gpus) / 8;
  constexpr std::size_t end = begin + sizeof(Published::gpus) / 8;
  return word >= begin && word < end && (word - begin) % (sizeof(abi::PerGpu) / 8) < 2;
}

// Sealed, so that a reader need not fear that it shrinks. -1 where the kernel will not.
int make_shared() {
  os::Descriptor fd(
      ::memfd_create(std::string(published_name).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), sizeof(Published)) != 0) return -1;
  ::fchmod(fd.get(), 0400);
  // Above the standard ones, which a program that closed them may open again by number.
  return fd.get() > STDERR_FILENO ? fd.release() : ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3);
}

void* map_counters(int& fd) {
  const int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* at = ::mmap(nullptr, sizeof(Published), PROT_READ | PROT_WRITE, flags, fd, 0);
  constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
  if (fd < 0 || (at != MAP_FAILED && ::fcntl(fd, F_ADD_SEALS, seals) == 0)) return at;
  if (at != MAP_FAILED) ::munmap(at, sizeof(Published));
  ::close(fd);
  fd = -1;
  return map_counters(fd);
}

}  // namespace

std::uint64_t this_second() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec);
}

std::size_t size_bucket(std::uint64_t size_bytes) {
  const auto bits = static_cast<std::size_t>(std::bit_width(size_bytes));
  return bits < 13 ? 0 : std::min<std::size_t>(bits - 12, abi::histogram_size / 2 - 1);
}

Statistics::Statistics(int answered_version, int level)
    : answered_version_(answered_version), level_(level), counting_(level > 0), fd_(make_shared()) {
  void* at = map_counters(fd_);
  if (at == MAP_FAILED) throw std::bad_alloc();
  counters_ = static_cast<Published*>(at);
  counters_->version = published_version;
  counters_->size_bytes = sizeof(Published);
  counters_->pid = ::getpid();
  counters_->answered_version = static_cast<std::uint64_t>(answered_version);
  counters_->level = static_cast<std::uint64_t>(level);
  std::atomic_ref(counters_->magic).store(published_magic, std::memory_order_release);
}

Statistics::~Statistics() {
  ::munmap(counters_, sizeof(Published));
  if (fd_ >= 0) ::close(fd_);
}

void Statistics::set_level(int level) {
  level_.store(level);
  if (fork_guard_.forked()) return;
  std::atomic_ref(counters_->level).store(static_cast<std::uint64_t>(level));
}

abi::Code Statistics::start() {
  if (level() == 0) return abi::internal_error;
  counting_.store(true);
  return abi::success;
}

void Statistics::reset() {
  if (fork_guard_.forked()) return;
  auto* word = reinterpret_cast<std::uint64_t*>(counters_);
  for (std::size_t i = offsetof(Published, level1) / 8; i < sizeof(Published) / 8; ++i) {
    if (!names_gpu(i)) std::atomic_ref(word[i]).store(0, std::memory_order_relaxed);
  }
}

void Statistics::count_result(abi::Counter abi::Level1::* counter, bool ok, std::uint64_t times) {
  if (!counting()) return;
  abi::Counter& place = counters_->level1.*counter;
  grow(ok ? place.ok : place.err, times);
}

void Statistics::add(std::uint64_t abi::Level1::* sum, std::uint64_t by) {
  if (counting()) grow(counters_->level1.*sum, by);
}

void Statistics::set(std::uint64_t abi::Level1::* value, std::uint64_t to) {
  if (counting()) std::atomic_ref(counters_->level1.*value).store(to, std::memory_order_relaxed);
}

void Statistics::count(const CountedCall& call) {
  if (!counting()) return;
  const FlowFields fields = fields_of(call.flow);
  if (fields.calls != nullptr) count_result(fields.calls, !call.failed);
  const bool read = is_read(call.flow) || call.flow == Flow::batch_read;
  const bool on_gpu = !is_batch(call.flow) && call.device >= 0 &&
                      call.device < static_cast<std::int32_t>(abi::gpu_limit);
  if (on_gpu && (call.failed || call.empty_read)) {
    abi::PerGpu& gpu = counters_->gpus[static_cast<std::size_t>(call.device)];
    grow(read ? gpu.read_errors : gpu.write_errors, 1);
  }
  if (call.failed || call.requested_bytes == 0) return;
  grow(counters_->level1.*fields.bytes, call.requested_bytes);
  if (fields.latency_sum_us != nullptr) {
    grow(counters_->level1.*fields.latency_sum_us, call.duration_us);
  }
  auto& sizes = read ? counters_->read_sizes : counters_->write_sizes;
  grow(sizes[size_bucket(call.requested_bytes)], 1);
  add_to_window(counters_->flows[static_cast<std::size_t>(call.flow)], call);
  if (!on_gpu) return;
  const auto device = static_cast<std::size_t>(call.device);
  abi::PerGpu& gpu = counters_->gpus[device];
  count_gpu(read ? gpu.read : gpu.write, call);
  grow(counters_->pooled_parts[device], call.pooled_parts);
  add_to_window(counters_->gpu_flows[device][read ? 0 : 1], call);
}

void Statistics::count_buffer(std::int32_t device, std::uint64_t size_bytes, bool registered) {
  if (!counting() || device < 0 || device >= static_cast<std::int32_t>(abi::gpu_limit)) return;
  abi::PerGpu& gpu = counters_->gpus[static_cast<std::size_t>(device)];
  if (registered) {
    grow(gpu.mapped, 1);
    grow(gpu.mapped_ok, 1);
    grow(gpu.registered_bytes, size_bytes);
    return;
  }
  grow(gpu.mapped_free, 1);
  shrink(gpu.registered_bytes, size_bytes);
}

void Statistics::show_gpus(std::uint64_t gpu_count, const Uuid& uuid) const {
  if (fork_guard_.forked()) return;
  const std::uint64_t count = std::min<std::uint64_t>(gpu_count, abi::gpu_limit);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto words =
        std::bit_cast<std::array<std::uint64_t, 2>>(uuid(static_cast<std::int32_t>(i)));
    auto* to = reinterpret_cast<std::uint64_t*>(counters_->gpus[i].uuid.data());
    for (std::size_t k = 0; k < words.size(); ++k) {
      std::atomic_ref(to[k]).store(words[k], std::memory_order_relaxed);
    }
  }
  std::atomic_ref(counters_->gpu_count).store(count, std::memory_order_relaxed);
}

std::unique_ptr<Published> Statistics::snapshot(std::uint64_t gpu_count, const Uuid& uuid) const {
  show_gpus(gpu_count, uuid);
  auto copy = std::make_unique<Published>();
  auto* to = reinterpret_cast<std::uint64_t*>(copy.get());
  auto* from = reinterpret_cast<std::uint64_t*>(counters_);
  for (std::size_t i = 0; i < sizeof(Published) / 8; ++i) to[i] = load(from[i]);
  fill_rates(*copy, this_second());
  return copy;
}

void fill_averages(abi::Level1& sums) {
  sums.read_latency_avg_us = mean(sums.read_latency_sum_us, sums.read);
  sums.write_latency_avg_us = mean(sums.write_latency_sum_us, sums.write);
  sums.readv_latency_avg_us = mean(sums.readv_latency_sum_us, sums.readv);
  sums.writev_latency_avg_us = mean(sums.writev_latency_sum_us, sums.writev);
  sums.batch_submit_latency_avg_us = mean(sums.batch_submit_latency_sum_us, sums.batch_submit);
  sums.batch_complete_latency_avg_us =
      mean(sums.batch_complete_latency_sum_us, sums.batch_complete);
}

void fill_rates(Published& counters, std::uint64_t now_second) {
  abi::Level1& sums = counters.level1;
  const auto flow = [&](Flow which) {
    return rate_of(counters.flows[static_cast<std::size_t>(which)], now_second);
  };
  sums.read_bytes_per_s = flow(Flow::read).bytes;
  sums.read_ops_per_s = flow(Flow::read).operations;
  sums.write_bytes_per_s = flow(Flow::write).bytes;
  sums.write_ops_per_s = flow(Flow::write).operations;
  sums.readv_bytes_per_s = flow(Flow::readv).bytes;
  sums.readv_ops_per_s = flow(Flow::readv).operations;
  sums.writev_bytes_per_s = flow(Flow::writev).bytes;
  sums.writev_ops_per_s = flow(Flow::writev).operations;
  sums.batch_read_bytes_per_s = flow(Flow::batch_read).bytes;
  sums.batch_write_bytes_per_s = flow(Flow::batch_write).bytes;
  fill_averages(sums);
  for (std::size_t i = 0; i < abi::gpu_limit; ++i) {
    const Rate read = rate_of(counters.gpu_flows[i][0], now_second);
    const Rate write = rate_of(counters.gpu_flows[i][1], now_second);
    counters.gpus[i].read.bytes_per_s = read.bytes;
    counters.gpus[i].read.utilization = read.busy_us / 10'000;
    counters.gpus[i].write.bytes_per_s = write.bytes;
    counters.gpus[i].write.utilization = write.busy_us / 10'000;
  }
}

void write_level(void* out, int level, int version, const Published& counters) {
  const abi::StatsLayout layout = abi::stats_layout(version);
  auto* at = static_cast<char*>(out);
  std::memcpy(at, &counters.level1, layout.level1_bytes);
  if (level < 2) return;
  constexpr std::size_t histogram_bytes = sizeof(counters.read_sizes);
  std::memcpy(at + layout.level1_bytes, counters.read_sizes.data(), histogram_bytes);
  std::memcpy(at + layout.level1_bytes + histogram_bytes, counters.write_sizes.data(),
              histogram_bytes);
  if (level < 3) return;
  const auto gpu_count = static_cast<std::uint32_t>(counters.gpu_count);
  std::memcpy(at + layout.level2_bytes(), &gpu_count, sizeof(gpu_count));
  std::memcpy(at + layout.gpus_at(), counters.gpus.data(), sizeof(counters.gpus));
}

}  // namespace straightway::cufile
