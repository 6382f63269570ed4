// Which bytes of a file lie in the page cache.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <vector>

#include "os/facts.hpp"

namespace straightway::os {
namespace {

// Not in the headers of Debian 12; one number on every architecture.
constexpr long cachestat_number = 451;
struct CachestatRange {
  std::uint64_t offset;
  std::uint64_t size_bytes;
};
struct Cachestat {
  std::uint64_t cached_pages;
  std::uint64_t dirty_pages;
  std::uint64_t writeback_pages;
  std::uint64_t evicted_pages;
  std::uint64_t recently_evicted_pages;
};

constexpr std::uint64_t window_bytes = std::uint64_t{64} << 20;

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

Residency unknown(std::string why) {
  Residency residency;
  residency.why_unknown = std::move(why);
  return residency;
}

// A pipe would get an answer too: none of its bytes are cached.
bool has_pages(int fd) {
  struct stat status;
  return ::fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode));
}

bool is_overlay(int fd) {
  struct statfs status;
  return ::fstatfs(fd, &status) == 0 && static_cast<std::uint64_t>(status.f_type) == 0x794C7630;
}

// Those to whom the kernel tells the truth; to others mincore says that all is resident.
bool is_owner_or_writer(int fd) {
  struct stat status;
  if (::fstat(fd, &status) == 0 && status.st_uid == ::geteuid()) return true;
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  return ::faccessat(AT_FDCWD, link.c_str(), W_OK, AT_EACCESS) == 0;
}

// Counts the resident pages of one window, which begins on a page; -errno where it cannot.
std::int64_t resident_pages(int fd, std::uint64_t offset, std::uint64_t size_bytes) {
  void* mapped = ::mmap(nullptr, size_bytes, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) return -errno;
  const std::uint64_t pages = (size_bytes + page_bytes() - 1) / page_bytes();
  std::vector<unsigned char> present(pages);
  const int code = ::mincore(mapped, size_bytes, present.data()) == 0 ? 0 : errno;
  ::munmap(mapped, size_bytes);
  if (code != 0) return -code;
  return std::ranges::count_if(present, [](unsigned char page) { return (page & 1) != 0; });
}

Residency by_mincore(int fd, std::uint64_t offset, std::uint64_t size_bytes) {
  if (!is_owner_or_writer(fd)) {
    return unknown("only the file's owner or a writer may see what is cached");
  }
  Residency residency;
  const std::uint64_t first = offset / page_bytes() * page_bytes();
  const std::uint64_t end = offset + size_bytes;
  std::uint64_t pages = 0;
  for (std::uint64_t at = first; at < end; at += window_bytes) {
    const std::int64_t found = resident_pages(fd, at, std::min(window_bytes, end - at));
    if (found < 0) return unknown("mincore: " + errno_text(static_cast<int>(-found)));
    pages += static_cast<std::uint64_t>(found);
  }
  residency.known = true;
  residency.witness = "mincore";
  residency.resident_bytes = std::min(pages * page_bytes(), size_bytes);
  return residency;
}

}  // namespace

Residency read_residency(int fd, std::uint64_t offset, std::uint64_t size_bytes) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (offset > most || size_bytes > most - offset) return unknown("the range is out of bounds");
  if (!has_pages(fd)) return unknown("it is neither a regular file nor a block device");
  Residency residency;
  if (size_bytes == 0) {  // to the kernel, 0 means up to the end of the file
    residency.known = true;
    return residency;
  }
  // On overlayfs cachestat looks at the wrong inode, and says 0 of a hot file.
  if (is_overlay(fd)) return by_mincore(fd, offset, size_bytes);
  CachestatRange range{offset, size_bytes};
  Cachestat counts{};
  if (::syscall(cachestat_number, fd, &range, &counts, 0U) != 0) {
    // EPERM: the file is another user's, and then mincore would claim that all of it is resident.
    if (errno == EPERM) return unknown("cachestat: " + errno_text(EPERM));
    return by_mincore(fd, offset, size_bytes);
  }
  residency.known = true;
  residency.witness = "cachestat";
  residency.resident_bytes = std::min(counts.cached_pages * page_bytes(), size_bytes);
  residency.dirty_bytes = std::min(counts.dirty_pages * page_bytes(), size_bytes);
  return residency;
}

}  // namespace straightway::os
