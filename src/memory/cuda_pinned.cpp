#include "memory/cuda_pinned.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "os/signals_blocked.hpp"

namespace straightway::memory::cuda {
namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
constexpr std::size_t least_page_bytes = 4096;
constexpr std::size_t least_share_bytes = std::size_t{4} << 20;  // worth a thread

Error cannot_pin(std::size_t size_bytes, ErrorKind kind, int code, std::string why,
                 std::string advice) {
  return Error{.kind = kind,
               .origin = code != 0 ? ErrorOrigin::system : ErrorOrigin::straightway,
               .code = code,
               .attempted = "pin " + std::to_string(size_bytes) + " bytes of host memory",
               .path = {},
               .offset = {},
               .why = std::move(why),
               .advice = std::move(advice)};
}

// Clearing pages is most of what pinning costs (measured: 17 of 19 ms for 64 MiB), so several
// threads share it. What fails here happens in the registration, which tells.
void populate(std::byte* data, std::size_t size_bytes, std::uint32_t threads) {
  const auto count = std::min<std::size_t>(threads, size_bytes / least_share_bytes);
  if (count < 2) return;
  const auto share = (size_bytes / count + huge_page_bytes - 1) & ~(huge_page_bytes - 1);
  // By touching: MADV_POPULATE_WRITE would keep whoever maps memory meanwhile (the pump, which
  // starts threads) waiting for all of it.
  const auto fill = [=](std::size_t begin) {
    volatile std::byte* bytes = data;
    const auto end = std::min(begin + share, size_bytes);
    for (auto at = begin; at < end; at += least_page_bytes) bytes[at] = std::byte{0};
  };
  std::vector<std::jthread> helping;
  try {
    const os::SignalsBlocked blocked;
    helping.reserve(count);
    for (auto begin = share; begin < size_bytes; begin += share) helping.emplace_back(fill, begin);
  } catch (const std::system_error&) {  // no more threads: the registration does the rest
  } catch (const std::bad_alloc&) {
  }
  fill(0);
}

}  // namespace

Result<std::unique_ptr<Pinned>> RegisteredMemory::make(std::shared_ptr<Devices> devices, int device,
                                                       std::size_t size_bytes,
                                                       std::uint32_t threads) {
  if (auto parent = devices->check_fork("pin host memory"); !parent) return parent.error();
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (size_bytes == 0 || size_bytes > std::numeric_limits<std::ptrdiff_t>::max() - page) {
    return cannot_pin(size_bytes, ErrorKind::invalid_argument, 0, "the size is out of range", "");
  }
  const std::size_t whole = (size_bytes + page - 1) / page * page;
  void* data = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    const int code = errno;
    return cannot_pin(size_bytes, ErrorKind::out_of_memory, code, std::strerror(code),
                      "lower the pinned-bytes limit");
  }
  // Advice only: huge pages register faster, and a forked child must not share DMA targets.
  madvise(data, whole, MADV_HUGEPAGE);
  madvise(data, whole, MADV_DONTFORK);
  populate(static_cast<std::byte*>(data), whole, threads);
  std::unique_ptr<RegisteredMemory> memory(
      new RegisteredMemory(devices, static_cast<std::byte*>(data), whole));
  auto registered = devices->in_context(device, "pin host memory", [&](Context) {
    return devices->driver().host_register(data, whole, host_register_portable);
  });
  if (!registered) return registered.error();
  memory->context_ = *registered;
  return std::unique_ptr<Pinned>(std::move(memory));
}

RegisteredMemory::~RegisteredMemory() {
  if (devices_->forked()) return;  // neither the registration nor the mapping came along
  if (context_ != nullptr) {
    devices_->wait_for_streams();
    const Scope scope(devices_->driver(), context_);
    // Where the context is gone, so is the registration.
    if (scope.status() == success) devices_->driver().host_unregister(data_);
  }
  munmap(data_, size_bytes_);
}

}  // namespace straightway::memory::cuda
