#include "receipt/ledger.hpp"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <string>

#include "os/sealable_memory.hpp"
#include "receipt/duration.hpp"
#include "receipt/ledger_layout.hpp"

namespace straightway::receipt {
namespace {

constexpr std::size_t alive_bytes = 4096;  // mmap rounds up to the page

ErrorKind kind_of(int code) {
  switch (code) {
    case EMFILE:
    case ENFILE:
      return ErrorKind::too_many_files;
    case ENOMEM:
    case EAGAIN:
      return ErrorKind::out_of_memory;
    case EACCES:
    case EPERM:
      return ErrorKind::permission;
    default:
      return ErrorKind::unsupported;
  }
}

Error cannot_create(const char* call, int code) {
  return Error{kind_of(code),
               ErrorOrigin::system,
               code,
               "publish the statistics of this process",
               "",
               std::nullopt,
               std::string(call) + ": " + ::strerror(code),
               "set STRAIGHTWAY_LEDGER=0 to do without"};
}

// MADV_DONTFORK on the shared pages would make a child crash that still calls add(); instead the
// child keeps them, and a private page that the kernel wipes on fork says that they are not its
// own.
Result<std::uint64_t*> map_alive() {
  void* page =
      ::mmap(nullptr, alive_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return cannot_create("mmap", errno);
  if (::madvise(page, alive_bytes, MADV_WIPEONFORK) != 0) {
    const int code = errno;
    ::munmap(page, alive_bytes);
    return cannot_create("madvise(MADV_WIPEONFORK)", code);
  }
  auto* alive = static_cast<std::uint64_t*>(page);
  *alive = 1;
  return alive;
}

std::uint64_t wall_clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// Zeros are the right start of every counter, and the file is full of them.
void fill_header(LedgerLayout& layout) {
  layout.header = {ledger_magic, layout_version, sizeof(LedgerLayout)};
  layout.pid = ::getpid();
  layout.started_ns = wall_clock_ns();
  const std::string_view program = ::program_invocation_short_name;
  program.copy(layout.program.data(), layout.program.size() - 1);
}

void grow(std::uint64_t& counter, std::uint64_t by) {
  std::atomic_ref<std::uint64_t>(counter).fetch_add(by, std::memory_order_relaxed);
}

// pthread_self() is the address of the thread's control block: free to read, and far apart from
// thread to thread.
LedgerStripe& stripe_of_this_thread(LedgerLayout& layout) {
  const auto self = reinterpret_cast<std::uintptr_t>(reinterpret_cast<void*>(::pthread_self()));
  const std::uint64_t mixed = (static_cast<std::uint64_t>(self) >> 6) * 0x9e37'79b9'7f4a'7c15u;
  return layout.stripes[(mixed >> 32) % stripe_count];
}

void add_rare(LedgerStripe& stripe, const Receipt& receipt) {
  if (receipt.retries != 0) grow(stripe.retries, receipt.retries);
  if (receipt.fallbacks != 0) grow(stripe.fallbacks, receipt.fallbacks);
  if (receipt.ended_early) grow(stripe.short_reads, 1);
  if (receipt.layer.n == 0) return;
  grow(stripe.layer_n, receipt.layer.n);
  grow(stripe.layer_nvfs, receipt.layer.nvfs);
  grow(stripe.layer_p2pdma, receipt.layer.p2pdma);
  grow(stripe.layer_posix, receipt.layer.posix);
}

bool is_alive(std::uint64_t* alive) {
  return std::atomic_ref<std::uint64_t>(*alive).load(std::memory_order_relaxed) != 0;
}

}  // namespace

Result<std::unique_ptr<Ledger>> Ledger::create() {
  os::Descriptor fd = os::create_sealable_memory(std::string(ledger_name).c_str());
  if (!fd) return cannot_create("memfd_create", errno);
  if (::ftruncate(fd.get(), sizeof(LedgerLayout)) != 0) return cannot_create("ftruncate", errno);
  ::fchmod(fd.get(), 0400);
  void* shared =
      ::mmap(nullptr, sizeof(LedgerLayout), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (shared == MAP_FAILED) return cannot_create("mmap", errno);
  auto* layout = static_cast<LedgerLayout*>(shared);
  const auto fail = [&](Error error) {
    ::munmap(shared, sizeof(LedgerLayout));
    return error;
  };
  fill_header(*layout);  // before the seals, without which no reader looks at it
  // Ours is the last writable mapping; from here on nobody else gets one.
  constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
  if (::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) {
    return fail(cannot_create("fcntl(F_ADD_SEALS)", errno));
  }
  Result<std::uint64_t*> alive = map_alive();
  if (!alive) return fail(alive.error());
  return std::unique_ptr<Ledger>(new Ledger(fd.release(), layout, *alive));
}

Ledger::~Ledger() {
  ::munmap(layout_, sizeof(LedgerLayout));
  ::munmap(alive_, alive_bytes);
  ::close(fd_);
}

void Ledger::add(const Receipt& receipt) noexcept {
  if (!is_alive(alive_)) return;
  LedgerStripe& stripe = stripe_of_this_thread(*layout_);
  const std::size_t way = receipt.direction == Direction::write ? 1 : 0;
  for (std::size_t i = 0; i < route_count; ++i) {
    const RouteShare& share = receipt.routes[i];
    if (share.segments == 0 && share.bytes == 0) continue;
    grow(stripe.routes[way][i].bytes, share.bytes);
    grow(stripe.routes[way][i].segments, share.segments);
  }
  const std::uint64_t time_ns = duration_ns(receipt.times);
  SizeCell& cell = stripe.sizes[way][size_class(receipt.wanted_bytes)];
  grow(cell.requests, 1);
  grow(cell.bytes, receipt.moved_bytes);
  grow(cell.time_ns, time_ns);
  grow(stripe.latencies[way][latency_class(time_ns)], 1);
  add_rare(stripe, receipt);
}

void Ledger::add_error(Direction direction) noexcept {
  if (!is_alive(alive_)) return;
  grow(stripe_of_this_thread(*layout_).errors[direction == Direction::write ? 1 : 0], 1);
}

}  // namespace straightway::receipt
