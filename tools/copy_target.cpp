#include "copy_target.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "arguments.hpp"
#include "interrupt.hpp"

namespace straightway::tools {
namespace {

Error refusal(const std::string& path, ErrorKind kind, std::string why, std::string advice) {
  Error error = usage_error("copy to", std::move(why), std::move(advice));
  error.kind = kind;
  error.path = path;
  return error;
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A link to an existing file stands for that file; a dangling one is refused, since the file it
// names may be meant to be anywhere.
Result<std::string> follow_links(const std::string& path) {
  struct stat status;
  if (::lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return path;
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) {
    Error error = system_error(errno, "follow the link", path);
    error.advice = "remove the link, or name the file that it should point to";
    return error;
  }
  std::string followed = real;
  std::free(real);
  return followed;
}

Result<void> check(const std::string& path, const struct stat& source, bool force) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return system_error(errno, "copy to", path);
  }
  if (status.st_dev == source.st_dev && status.st_ino == source.st_ino) {
    return refusal(path, ErrorKind::invalid_argument, "source and target are the same file", "");
  }
  if (S_ISDIR(status.st_mode)) {
    return refusal(path, ErrorKind::wrong_file_type, "it is a folder", "name the file in it");
  }
  if (!S_ISREG(status.st_mode)) {
    return refusal(path, ErrorKind::wrong_file_type, "it is no regular file", "");
  }
  if (force) return {};
  return refusal(path, ErrorKind::invalid_argument, "it exists", "say --force to replace it");
}

int sync_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int code = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  return code;
}

// What the file system has left for this user; unknown counts as enough.
bool has_room(int fd, std::uint64_t size_bytes) {
  struct statvfs room{};
  if (::fstatvfs(fd, &room) != 0 || room.f_frsize == 0) return true;
  return size_bytes / room.f_frsize <= room.f_bavail;
}

}  // namespace

CopyTarget::CopyTarget(CopyTarget&& other) noexcept
    : path_(std::move(other.path_)),
      unfinished_(std::exchange(other.unfinished_, {})),
      fd_(std::exchange(other.fd_, -1)),
      mode_(other.mode_),
      force_(other.force_) {}

CopyTarget::~CopyTarget() {
  if (fd_ >= 0) ::close(fd_);
  if (!unfinished_.empty()) ::unlink(unfinished_.c_str());
}

Result<CopyTarget> CopyTarget::begin(const std::string& path, const struct stat& source,
                                     std::uint64_t size_bytes, bool force) {
  auto followed = follow_links(path);
  if (!followed) return followed.error();
  if (auto fine = check(*followed, source, force); !fine) return fine.error();
  CopyTarget target;
  target.path_ = *followed;
  target.mode_ = source.st_mode & 0777;
  target.force_ = force;
  std::string name = folder_of(*followed) + "/.straightway-copy-XXXXXX";
  target.fd_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (target.fd_ < 0) return system_error(errno, "make a file beside", path);
  target.unfinished_ = name;
  if (auto reserved = target.reserve(size_bytes); !reserved) return reserved.error();
  return target;
}

// Reserving finds a full disk before the work, and writes never extend the file, so that they may
// run side by side.
Result<void> CopyTarget::reserve(std::uint64_t size_bytes) {
  if (size_bytes == 0) return {};
  const auto size = static_cast<off_t>(size_bytes);
  // Looked at first: a reservation that fails half-way has filled the disk for everybody meanwhile.
  int code = has_room(fd_, size_bytes) ? EINTR : ENOSPC;
  while (code == EINTR && interrupted() == 0) {
    code = ::fallocate(fd_, 0, 0, size) == 0 ? 0 : errno;
  }
  if (code == EOPNOTSUPP || code == ENOSYS) code = ::ftruncate(fd_, size) == 0 ? 0 : errno;
  if (code != 0) return system_error(code, "reserve the space", path_);
  return {};
}

// Without force the name must still be free: another program may have taken it meanwhile.
Result<void> CopyTarget::give_name() {
  if (force_) {
    if (::rename(unfinished_.c_str(), path_.c_str()) != 0) {
      return system_error(errno, "name the finished copy", path_);
    }
    unfinished_.clear();
    return {};
  }
  if (::renameat2(AT_FDCWD, unfinished_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0) {
    unfinished_.clear();
    return {};
  }
  // Some file systems do not know that flag; a second link says the same.
  if (errno == EINVAL && ::link(unfinished_.c_str(), path_.c_str()) == 0) return {};
  Error error = system_error(errno, "name the finished copy", path_);
  if (error.code == EEXIST) error.advice = "another program made it; say --force to replace it";
  return error;
}

Result<void> CopyTarget::finish(Sync sync) {
  if (::fchmod(fd_, mode_) != 0) return system_error(errno, "set the mode bits", path_);
  if (auto named = give_name(); !named) return named;
  if (sync != Sync::full) return {};
  if (::fsync(fd_) != 0) return system_error(errno, "make it durable", path_);
  if (const int code = sync_folder(folder_of(path_)); code != 0) {
    return system_error(code, "make the folder durable", folder_of(path_));
  }
  return {};
}

}  // namespace straightway::tools
