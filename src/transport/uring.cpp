#include "transport/uring.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <thread>

#include "os/descriptor.hpp"
#include "transport/posix.hpp"

namespace straightway::transport {
namespace {

constexpr std::uint64_t retry_interval_ns = 1'000'000;
constexpr std::uint32_t refusals_limit = 10;

Error refused(const char* what, int code) {
  return Error{ErrorKind::unsupported,
               ErrorOrigin::system,
               code,
               what,
               "",
               {},
               std::strerror(code),
               "reads and writes go by pread and pwrite instead"};
}

// Kernel 6.1 has both flags; an older one answers EINVAL and gets a plain ring.
int open_ring(std::uint32_t depth, io_uring* ring) {
  for (const unsigned flags : {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 0U}) {
    io_uring_params params{};
    params.flags = flags;
    const int code = io_uring_queue_init_params(depth, ring, &params);
    if (code != -EINVAL) return code;
  }
  return -EINVAL;
}

// The ring's descriptor, out of the way of the standard streams.
bool move_descriptor(io_uring* ring) {
  if (ring->ring_fd > 2) return true;
  const int moved = os::Descriptor::above_standard_streams(ring->ring_fd);
  ring->ring_fd = moved;
  ring->enter_ring_fd = moved;
  return moved >= 0;
}

// A filter may allow the setup and refuse the use: one round trip shows it before bytes depend on
// it.
int try_ring(io_uring* ring) {
  io_uring_sqe* sqe = io_uring_get_sqe(ring);
  if (sqe == nullptr) return -EBUSY;
  io_uring_prep_nop(sqe);
  int code = io_uring_submit_and_wait(ring, 1);
  while (code == -EINTR) code = io_uring_submit_and_wait(ring, 1);
  if (code < 0) return code;
  io_uring_cqe* cqe = nullptr;
  code = io_uring_wait_cqe(ring, &cqe);
  if (code == 0) io_uring_cqe_seen(ring, cqe);
  return code;
}

}  // namespace

Result<std::unique_ptr<Uring>> Uring::create(std::uint32_t depth, Wake& wake) {
  std::unique_ptr<Uring> uring(new Uring);
  if (const int code = open_ring(depth, &uring->ring_); code < 0) {
    return refused("set up io_uring", -code);
  }
  uring->open_ = true;
  if (!move_descriptor(&uring->ring_)) return refused("move the io_uring descriptor", errno);
  // A forked child must not share the ring's memory with us.
  if (const int code = io_uring_ring_dontfork(&uring->ring_); code < 0) {
    return refused("keep io_uring out of forked children", -code);
  }
  if (const int code = try_ring(&uring->ring_); code < 0) return refused("use io_uring", -code);
  if (const int code = io_uring_register_eventfd(&uring->ring_, wake.descriptor()); code < 0) {
    return refused("register the wake-up object with io_uring", -code);
  }
  auto& capabilities = uring->capabilities_;
  capabilities.name = "uring";
  capabilities.largest_segment_bytes = std::uint64_t{1} << 30;
  capabilities.depth = depth;
  capabilities.threads = 1;
  uring->slots_.resize(depth);
  for (std::uint32_t i = depth; i > 0; --i) uring->free_.push_back(i - 1);
  uring->unsubmitted_.reserve(depth);
  uring->failed_.reserve(depth);
  return uring;
}

Uring::~Uring() {
  if (open_) {
    while (free_.size() < slots_.size()) {  // drain: the kernel still writes into callers' memory
      enter();
      io_uring_cqe* cqe = nullptr;
      if (in_kernel() == 0 || io_uring_wait_cqe(&ring_, &cqe) != 0) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(retry_interval_ns));
        continue;
      }
      free_.push_back(static_cast<std::uint32_t>(io_uring_cqe_get_data64(cqe)));
      io_uring_cqe_seen(&ring_, cqe);
    }
    io_uring_queue_exit(&ring_);
  }
}

Result<Attachment> Uring::attach(const FileRef& file) { return attach_descriptors(file); }
Result<Attachment> Uring::attach(const MemoryRange& memory) { return attach_host(memory); }

// Hands prepared entries to the kernel. What it does not take now (EINTR, EAGAIN, EBUSY) stays in
// the submission queue and goes with the next call; other refusals may be for good (a filter that
// came later).
void Uring::enter() {
  if (unsubmitted_.empty()) return;
  const int taken = io_uring_submit(&ring_);
  if (taken > 0) {
    const auto count = std::min<std::ptrdiff_t>(std::ssize(unsubmitted_), taken);
    unsubmitted_.erase(unsubmitted_.begin(), unsubmitted_.begin() + count);
    refusals_ = 0;
  } else if (taken < 0 && taken != -EINTR && taken != -EAGAIN && taken != -EBUSY &&
             ++refusals_ == refusals_limit) {
    give_up(-taken);
  }
  poll_if_needed();
}

// The ring is never entered with new segments again, so the kernel does not see those in its queue.
void Uring::give_up(int code) {
  code_ = code;
  capabilities_.broken = true;
  for (const auto slot : unsubmitted_) {
    failed_.push_back(slots_[slot].cookie);
    free_.push_back(slot);
  }
  unsubmitted_.clear();
}

// Of a ring that was given up: each segment ends with what the kernel said.
std::size_t Uring::fail(std::span<const Segment> segments) {
  const auto count = std::min(segments.size(), free_.size() - failed_.size());
  for (const auto& segment : segments.first(count)) failed_.push_back(segment.cookie);
  poll_if_needed();
  return count;
}

// What waits here wakes nobody up.
void Uring::poll_if_needed() {
  const bool waits = !unsubmitted_.empty() || !failed_.empty();
  capabilities_.poll_interval_ns = waits ? retry_interval_ns : 0;
}

// Storage reads are charged to the thread that submits them, and the first segment carries the sum.
// What the kernel hands to its own workers shows as less than was asked: then nothing is known.
void Uring::charge(std::span<const Segment> segments, std::uint32_t first, std::int64_t before) {
  std::int64_t asked = 0;
  for (const auto& segment : segments) asked += static_cast<std::int64_t>(segment.size_bytes);
  const auto after = before < 0 ? -1 : account_.read_bytes();
  slots_[first].disk_bytes = before >= 0 && after - before >= asked ? after - before : -1;
}

std::size_t Uring::submit(std::span<const Segment> segments) {
  if (capabilities_.broken) return fail(segments);
  std::size_t count = 0;
  const auto before = account_.read_bytes();
  std::uint32_t first = 0;
  while (count < segments.size() && !free_.empty()) {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    if (sqe == nullptr) break;
    const auto& segment = segments[count++];
    const auto slot = free_.back();
    free_.pop_back();
    if (count == 1) first = slot;
    slots_[slot] = {segment.cookie, before < 0 ? -1 : 0};
    const auto size = static_cast<unsigned>(segment.size_bytes);
    void* memory = reinterpret_cast<void*>(segment.address);
    const int fd = static_cast<int>(segment.file);
    if (segment.direction == Direction::read) {
      io_uring_prep_read(sqe, fd, memory, size, segment.file_offset);
    } else {
      io_uring_prep_write(sqe, fd, memory, size, segment.file_offset);
    }
    io_uring_sqe_set_data64(sqe, slot);
    unsubmitted_.push_back(slot);
  }
  enter();
  if (count > 0) charge(segments.first(count), first, before);
  return count;
}

std::size_t Uring::reap(std::span<Completion> completions) {
  if (free_.size() == slots_.size() && failed_.empty()) return 0;
  enter();
  std::size_t count = 0;
  for (; count < completions.size() && !failed_.empty(); ++count) {
    completions[count] = {};
    completions[count].cookie = failed_.back();
    completions[count].result = -code_;
    failed_.pop_back();
  }
  poll_if_needed();
  if (in_kernel() == 0) return count;
  if (ring_.flags & IORING_SETUP_DEFER_TASKRUN) io_uring_get_events(&ring_);
  io_uring_cqe* cqe = nullptr;
  while (count < completions.size() && io_uring_peek_cqe(&ring_, &cqe) == 0 && cqe != nullptr) {
    const auto slot = static_cast<std::uint32_t>(io_uring_cqe_get_data64(cqe));
    auto& completion = completions[count++];
    completion = {};
    completion.cookie = slots_[slot].cookie;
    completion.result = cqe->res;
    completion.disk_bytes = slots_[slot].disk_bytes;
    free_.push_back(slot);
    io_uring_cqe_seen(&ring_, cqe);
  }
  return count;
}

}  // namespace straightway::transport
