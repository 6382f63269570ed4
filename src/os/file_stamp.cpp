#include "os/file_stamp.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "os/descriptor.hpp"
#include "os/facts.hpp"

namespace straightway::os {
namespace {

constexpr int settle_polls = 1000;
constexpr useconds_t settle_interval_us = 2000;

}  // namespace

Result<FileStamp> read_stamp(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) {
    const int code = errno;
    return Error{
        errno_kind(code), ErrorOrigin::system, code, "look at", "", {}, errno_text(code), ""};
  }
  return FileStamp{
      status.st_dev,         status.st_ino,          static_cast<std::uint64_t>(status.st_size),
      status.st_ctim.tv_sec, status.st_ctim.tv_nsec, status.st_mtim.tv_sec,
      status.st_mtim.tv_nsec};
}

bool is_settled(const FileStamp& stamp, const timespec& now) {
  // A stamp without nanoseconds is taken for one of a file system that counts whole seconds.
  if (now.tv_sec != stamp.changed_s || stamp.changed_ns == 0) return now.tv_sec > stamp.changed_s;
  return now.tv_nsec > stamp.changed_ns;
}

Result<FileStamp> read_settled_stamp(int fd) {
  for (int poll = 0; poll < settle_polls; ++poll) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);  // the clock that stamps files
    auto stamp = read_stamp(fd);
    if (!stamp || is_settled(*stamp, now)) return stamp;
    ::usleep(settle_interval_us);
  }
  return Error{ErrorKind::unsupported,
               ErrorOrigin::straightway,
               0,
               "look at",
               "",
               {},
               "it keeps changing, or its change time lies in the future",
               "try again when nobody writes it, and check the clock"};
}

bool has_no_writers(int fd) {
  // A read lease is granted only where nobody has the file open for writing. It is given back at
  // once; a writer who comes in between waits for that, and the notice that the kernel then sends
  // is a signal that programs ignore.
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const Descriptor own(::open(link.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!own || ::fcntl(own.get(), F_SETSIG, SIGURG) != 0) return false;
  if (::fcntl(own.get(), F_SETLEASE, F_RDLCK) != 0) return false;
  ::fcntl(own.get(), F_SETLEASE, F_UNLCK);
  return true;
}

}  // namespace straightway::os
