// The real system calls, answering as the kernel does.

#include "os/syscalls.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace straightway::os {
namespace {

// Neither is in the headers of Debian 12; both numbers hold on every architecture.
constexpr long cachestat_number = 451;
constexpr int rwf_dontcache = 0x80;

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

// libc's -1 with errno, as the kernel said it.
template <class T>
T answer(T result) {
  return result < 0 ? static_cast<T>(-errno) : result;
}

std::int64_t real_pread(int fd, void* to, std::size_t size, std::uint64_t offset) {
  return answer<std::int64_t>(::pread(fd, to, size, static_cast<off_t>(offset)));
}

std::int64_t real_pwrite(int fd, const void* from, std::size_t size, std::uint64_t offset) {
  return answer<std::int64_t>(::pwrite(fd, from, size, static_cast<off_t>(offset)));
}

int real_open(const char* path, int flags, unsigned mode) {
  return answer(::open(path, flags, static_cast<mode_t>(mode)));
}

int real_fdatasync(int fd) { return answer(::fdatasync(fd)); }

int real_fsync(int fd) { return answer(::fsync(fd)); }

int real_fallocate(int fd, std::uint64_t offset, std::uint64_t size) {
  return answer(::fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(size)));
}

int real_truncate(int fd, std::uint64_t size) {
  return answer(::ftruncate(fd, static_cast<off_t>(size)));
}

int real_statx(int fd, const char* path, int flags, unsigned mask, struct statx* out) {
  return answer(::statx(fd, path, flags, mask, out));
}

std::int64_t real_pread_dontcache(int fd, void* to, std::size_t size, std::uint64_t offset) {
  const iovec part{to, size};
  return answer<std::int64_t>(::preadv2(fd, &part, 1, static_cast<off_t>(offset), rwf_dontcache));
}

std::int64_t real_cached_pages(int fd, std::uint64_t offset, std::uint64_t size) {
  CachestatRange range{offset, size};
  Cachestat counts{};
  const auto result = answer(::syscall(cachestat_number, fd, &range, &counts, 0U));
  return result < 0 ? result : static_cast<std::int64_t>(counts.cached_pages);
}

int real_drop_pages(int fd, std::uint64_t offset, std::uint64_t size) {
  return -::posix_fadvise(fd, static_cast<off_t>(offset), static_cast<off_t>(size),
                          POSIX_FADV_DONTNEED);
}

}  // namespace

const Syscalls& kernel() {
  static constexpr Syscalls real = {
      .pread = real_pread,
      .pwrite = real_pwrite,
      .open = real_open,
      .fdatasync = real_fdatasync,
      .fsync = real_fsync,
      .fallocate = real_fallocate,
      .truncate = real_truncate,
      .statx = real_statx,
      .pread_dontcache = real_pread_dontcache,
      .cached_pages = real_cached_pages,
      .drop_pages = real_drop_pages,
  };
  return real;
}

}  // namespace straightway::os
