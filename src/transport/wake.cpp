#include "transport/wake.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "os/descriptor.hpp"

namespace straightway::transport {

Result<std::unique_ptr<Wake>> Wake::create() {
  os::Descriptor fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd) {
    return Error{errno == EMFILE || errno == ENFILE ? ErrorKind::too_many_files : ErrorKind::io,
                 ErrorOrigin::system,
                 errno,
                 "create a wake-up object",
                 "",
                 {},
                 std::strerror(errno),
                 "raise the limit of open files (ulimit -n)"};
  }
  return std::unique_ptr<Wake>(new Wake(fd.release()));
}

Wake::~Wake() { ::close(fd_); }

void Wake::signal() noexcept {
  signalled_.store(true);
  if (!waiting_.load()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof one);
}

void Wake::wait(std::uint64_t timeout_ns) noexcept {
  waiting_.store(true);
  if (!signalled_.load()) {
    pollfd entry{fd_, POLLIN, 0};
    timespec limit{static_cast<time_t>(timeout_ns / 1'000'000'000),
                   static_cast<long>(timeout_ns % 1'000'000'000)};
    ::ppoll(&entry, 1, timeout_ns == UINT64_MAX ? nullptr : &limit, nullptr);
  }
  waiting_.store(false);
  signalled_.store(false);
  std::uint64_t drained = 0;
  [[maybe_unused]] const auto got = ::read(fd_, &drained, sizeof drained);
}

}  // namespace straightway::transport
