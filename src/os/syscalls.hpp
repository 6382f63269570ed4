#pragma once
// Every system call on the data path, as a table, so that tests can make any of them fail, stop
// short or be interrupted. Each entry answers like the kernel: a result >= 0, or -errno.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

struct statx;

namespace straightway::os {

struct Syscalls {
  std::int64_t (*pread)(int fd, void* to, std::size_t size, std::uint64_t offset);
  std::int64_t (*pwrite)(int fd, const void* from, std::size_t size, std::uint64_t offset);
  int (*open)(const char* path, int flags, unsigned mode);
  int (*fdatasync)(int fd);
  int (*fsync)(int fd);
  int (*fallocate)(int fd, std::uint64_t offset, std::uint64_t size);
  int (*truncate)(int fd, std::uint64_t size);
  int (*statx)(int fd, const char* path, int flags, unsigned mask, struct statx* out);
  // pread that leaves nothing in the page cache which was not there (RWF_DONTCACHE).
  std::int64_t (*pread_dontcache)(int fd, void* to, std::size_t size, std::uint64_t offset);
  // How many of the range's pages lie in the page cache.
  std::int64_t (*cached_pages)(int fd, std::uint64_t offset, std::uint64_t size);
  // Drops the range's clean whole pages from the page cache.
  int (*drop_pages)(int fd, std::uint64_t offset, std::uint64_t size);
};

// The real ones.
const Syscalls& kernel();

}  // namespace straightway::os
