#include "os/page_presence.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "os/facts.hpp"

namespace straightway::os {
namespace {

// The kernel's ioctl PAGEMAP_SCAN (Linux 6.7), which Debian 12's headers lack.
struct ScannedRange {
  std::uint64_t begin, end, categories;
};
struct Scan {
  std::uint64_t size_bytes, flags, begin, end, walked_to, ranges, ranges_limit, pages_limit,
      inverted, mask, any_of, returned;
};
constexpr unsigned long scan_request = _IOWR('f', 16, Scan);
constexpr std::uint64_t category_present = 1U << 3;
constexpr std::uint64_t category_swapped = 1U << 4;  // or being moved to another page frame

// Entries of /proc/self/pagemap.
constexpr std::uint64_t entry_present = std::uint64_t{1} << 63;
constexpr std::uint64_t entry_swapped = std::uint64_t{1} << 62;

// A page that the kernel tries to move is back after a moment.
constexpr int moving_looks = 50;
constexpr useconds_t moving_interval_us = 20;

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

Result<PagePresence> PagePresence::open() {
  PagePresence presence;
  presence.pagemap_ = Descriptor(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  const int code = errno;
  const int here = 0;
  if (presence.pagemap_ && presence.all_present(&here, sizeof here)) return presence;
  return Error{ErrorKind::unsupported,
               ErrorOrigin::system,
               presence.pagemap_ ? 0 : code,
               "watch pages",
               "",
               {},
               "/proc/self/pagemap does not tell which pages are mapped" +
                   (presence.pagemap_ ? "" : " (" + errno_text(code) + ")"),
               "mount /proc, and allow this process to read its own pagemap"};
}

bool PagePresence::all_present(const void* address, std::size_t size_bytes) const {
  if (size_bytes == 0) return true;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto begin = at / page_bytes() * page_bytes();
  const auto end = (at + size_bytes + page_bytes() - 1) / page_bytes() * page_bytes();
  auto seen = look(begin, end);
  for (int i = 0; i < moving_looks && seen == Seen::moving; ++i) {
    ::usleep(moving_interval_us);
    seen = look(begin, end);
  }
  return seen == Seen::present;
}

PagePresence::Seen PagePresence::look(std::size_t begin, std::size_t end) const {
  if (can_scan_.load(std::memory_order_relaxed)) {
    const auto seen = scan(begin, end);
    if (can_scan_.load(std::memory_order_relaxed)) return seen;
  }
  return read(begin, end);
}

// Asks for the first page that is not there.
PagePresence::Seen PagePresence::scan(std::size_t begin, std::size_t end) const {
  ScannedRange missing{};
  Scan request{};
  request.size_bytes = sizeof request;
  request.begin = begin;
  request.end = end;
  request.ranges = reinterpret_cast<std::uintptr_t>(&missing);
  request.ranges_limit = 1;
  request.inverted = request.mask = category_present;
  request.returned = category_present | category_swapped;
  const int found = ::ioctl(pagemap_.get(), scan_request, &request);
  if (found < 0 && (errno == ENOTTY || errno == EINVAL)) can_scan_ = false;
  if (found == 0 && request.walked_to == end) return Seen::present;
  return found == 1 && (missing.categories & category_swapped) != 0 ? Seen::moving : Seen::absent;
}

PagePresence::Seen PagePresence::read(std::size_t begin, std::size_t end) const {
  std::array<std::uint64_t, 512> entries;
  for (auto page = begin / page_bytes(); page < end / page_bytes();) {
    const auto count = std::min(entries.size(), end / page_bytes() - page);
    const auto wanted = static_cast<ssize_t>(count * sizeof(std::uint64_t));
    const auto offset = static_cast<off_t>(page * sizeof(std::uint64_t));
    if (::pread(pagemap_.get(), entries.data(), static_cast<std::size_t>(wanted), offset) != wanted)
      return Seen::absent;
    for (std::size_t i = 0; i < count; ++i) {
      if ((entries[i] & entry_present) != 0) continue;
      return (entries[i] & entry_swapped) != 0 ? Seen::moving : Seen::absent;
    }
    page += count;
  }
  return Seen::present;
}

}  // namespace straightway::os
