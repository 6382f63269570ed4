#include "os/shown_memory.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "os/descriptor.hpp"

namespace straightway::os {
namespace {

// A process has few of a form; more names than this are not worth a look.
constexpr std::size_t candidate_limit = 256;

// Whose memory is looked at, and for what.
struct Look {
  std::int64_t pid;
  const ShownForm& form;
};

Error cannot_read(std::int64_t pid, ErrorKind kind, std::string why, std::string advice = "",
                  int code = 0) {
  return Error{kind,
               code == 0 ? ErrorOrigin::straightway : ErrorOrigin::system,
               code,
               "read the statistics of process " + std::to_string(pid),
               "",
               std::nullopt,
               std::move(why),
               std::move(advice)};
}

Error others(std::int64_t pid, int code) {
  return cannot_read(pid, ErrorKind::permission, "it belongs to another user",
                     "read them as the user who runs it", code);
}

Error pretender(const Look& look, const char* what) {
  return cannot_read(look.pid, ErrorKind::wrong_file_type,
                     std::string("a file has the name of ") + look.form.name + ", but " + what,
                     "that program is not Straightway");
}

// One's own that may not be looked into has ended, or has made itself so.
Error denied(std::int64_t pid, int code) {
  struct stat status{};
  if (::stat(("/proc/" + std::to_string(pid)).c_str(), &status) != 0 ||
      status.st_uid != ::geteuid()) {
    return others(pid, code);
  }
  return cannot_read(pid, ErrorKind::permission,
                     "it has ended, or does not let other programs look into it", "", code);
}

Error from_errno(std::int64_t pid, int code) {
  if (code == EACCES || code == EPERM) return denied(pid, code);
  if (code == EMFILE || code == ENFILE) {
    return cannot_read(pid, ErrorKind::too_many_files, ::strerror(code), "close some files", code);
  }
  if (code == ENOENT || code == ESRCH) {
    return cannot_read(pid, ErrorKind::not_found, "there is no such process", "", code);
  }
  return cannot_read(pid, ErrorKind::io, ::strerror(code), "", code);
}

class Directory {
 public:
  explicit Directory(const char* path) : stream_(::opendir(path)) {}
  ~Directory() {
    if (stream_ != nullptr) ::closedir(stream_);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  bool open() const { return stream_ != nullptr; }
  int descriptor() const { return ::dirfd(stream_); }
  const char* next() const {
    const dirent* entry = ::readdir(stream_);
    return entry == nullptr ? nullptr : entry->d_name;
  }

 private:
  DIR* stream_;
};

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.end();
  const auto [at, failure] = std::from_chars(text.begin(), text.end(), value);
  if (failure != std::errc{} || at != end || value < 0) return std::nullopt;
  return value;
}

// The names in /proc/PID/fd whose links look right.
Result<std::vector<std::string>> find_candidates(const Look& look, const Directory& directory) {
  if (!directory.open()) return from_errno(look.pid, errno);
  std::vector<std::string> found;
  while (const char* name = directory.next()) {
    char link[64];
    const ssize_t size = ::readlinkat(directory.descriptor(), name, link, sizeof(link));
    if (size <= 0) continue;
    if (!std::string_view(link, static_cast<std::size_t>(size))
             .starts_with(look.form.link_prefix)) {
      continue;
    }
    found.emplace_back(name);
    if (found.size() == candidate_limit) break;
  }
  return found;
}

// Looks before it opens: the descriptor may be something else by now, and opening some devices or
// FIFOs has effects or blocks. O_PATH has none.
Result<Descriptor> open_candidate(const Look& look, int directory, const std::string& name) {
  Descriptor path(::openat(directory, name.c_str(), O_PATH | O_CLOEXEC));
  if (!path) return from_errno(look.pid, errno);
  struct stat status{};
  struct statfs filesystem{};
  if (::fstat(path.get(), &status) != 0) return from_errno(look.pid, errno);
  if (::fstatfs(path.get(), &filesystem) != 0) return from_errno(look.pid, errno);
  if (!S_ISREG(status.st_mode)) return pretender(look, "it is no regular file");
  if (filesystem.f_type != TMPFS_MAGIC) return pretender(look, "it does not lie in memory");
  if (status.st_uid != ::geteuid()) return others(look.pid, 0);
  const std::string again = "/proc/self/fd/" + std::to_string(path.get());
  Descriptor fd(::open(again.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return from_errno(look.pid, errno);
  return fd;
}

// A tmpfs file that is no memfd has the seal F_SEAL_SEAL alone, so the others also prove a memfd.
bool is_sealed(int fd) {
  constexpr int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & wanted) == wanted;
}

bool read_fully(int fd, void* to, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got =
        ::pread(fd, static_cast<char*>(to) + done, size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

using Copy = std::unique_ptr<std::byte[]>;

// Copies by pread, not by mmap: nothing that the writer does to the file can kill this process.
Result<Copy> copy_memory(const Look& look, int fd) {
  const ShownForm& form = look.form;
  if (!is_sealed(fd)) return pretender(look, "it is not sealed");
  struct stat status{};
  if (::fstat(fd, &status) != 0) return from_errno(look.pid, errno);
  ShownHeader header;
  constexpr std::size_t kept_bytes = offsetof(ShownHeader, pid);
  if (!read_fully(fd, &header, kept_bytes)) return pretender(look, "it is too short");
  if (header.magic != form.magic) return pretender(look, "it does not begin like one");
  if (header.version != form.version) {
    return cannot_read(look.pid, ErrorKind::unsupported,
                       "its layout is of version " + std::to_string(header.version) +
                           ", this program reads version " + std::to_string(form.version),
                       "use the `straightway` of the version that the process uses");
  }
  const auto size_bytes = static_cast<std::uint64_t>(status.st_size);
  if (header.size_bytes != form.size_bytes || size_bytes != form.size_bytes) {
    return pretender(look, "its size is wrong");
  }
  auto copy = std::make_unique<std::byte[]>(form.size_bytes);
  if (!read_fully(fd, copy.get(), form.size_bytes)) return pretender(look, "it is too short");
  return copy;
}

// Whether the process of this pid calls itself `inner`: the same, or its name in a pid namespace.
// A forked child still holds its parent's memory, which must not count as the child's.
bool is_own(std::int64_t pid, std::int64_t inner) {
  if (pid == inner) return true;
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("NSpid:")) continue;
    std::istringstream names(line.substr(6));
    for (std::int64_t name = 0; names >> name;) {
      if (name == inner) return true;
    }
  }
  return false;
}

Result<Copy> read_candidate(const Look& look, int directory, const std::string& name) {
  Result<Descriptor> fd = open_candidate(look, directory, name);
  if (!fd) return fd.error();
  return copy_memory(look, fd->get());
}

}  // namespace

Result<void> read_shown(std::int64_t pid, const ShownForm& form,
                        const std::function<void(std::span<const std::byte>)>& take) {
  if (pid <= 0) return cannot_read(pid, ErrorKind::invalid_argument, "a process number is above 0");
  const Look look{pid, form};
  const Directory directory(("/proc/" + std::to_string(pid) + "/fd").c_str());
  Result<std::vector<std::string>> candidates = find_candidates(look, directory);
  if (!candidates) return candidates.error();
  std::optional<Error> failure;
  bool taken = false;
  for (const std::string& name : *candidates) {
    Result<Copy> copy = read_candidate(look, directory.descriptor(), name);
    if (!copy) {
      if (!failure) failure = copy.error();
      continue;
    }
    ShownHeader header;
    ::memcpy(&header, copy->get(), sizeof(header));
    if (!is_own(pid, header.pid)) continue;
    take({copy->get(), form.size_bytes});
    taken = true;
  }
  if (taken) return {};
  if (failure) return *failure;
  return cannot_read(pid, ErrorKind::not_found, "it publishes none", form.when_none);
}

std::vector<std::int64_t> own_processes() {
  std::vector<std::int64_t> pids;
  const Directory processes("/proc");
  if (!processes.open()) return pids;
  while (const char* name = processes.next()) {
    const std::optional<std::int64_t> pid = parse_number(name);
    if (!pid || *pid == 0) continue;
    struct stat status{};
    if (::fstatat(processes.descriptor(), name, &status, 0) != 0) continue;
    if (status.st_uid == ::geteuid()) pids.push_back(*pid);
  }
  std::ranges::sort(pids);
  return pids;
}

}  // namespace straightway::os
