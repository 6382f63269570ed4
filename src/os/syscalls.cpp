// The real system calls, answering as the kernel does.

#include "os/syscalls.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace straightway::os {
namespace {

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

int real_statx(int fd, const char* path, int flags, unsigned mask, struct statx* out) {
  return answer(::statx(fd, path, flags, mask, out));
}

}  // namespace

const Syscalls& kernel() {
  static constexpr Syscalls real = {real_pread, real_pwrite,    real_open, real_fdatasync,
                                    real_fsync, real_fallocate, real_statx};
  return real;
}

}  // namespace straightway::os
