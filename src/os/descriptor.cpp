#include "os/descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace straightway::os {

void Descriptor::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

int Descriptor::above_standard_streams(int fd) {
  if (fd < 0 || fd > 2) return fd;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  const int code = errno;
  ::close(fd);
  errno = code;
  return moved;
}

}  // namespace straightway::os
