#include "api/open_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "os/facts.hpp"

namespace straightway {
namespace {

Error open_error(const std::string& path, int code) {
  Error error{
      os::errno_kind(code), ErrorOrigin::system, code, "open", path, {}, os::errno_text(code), ""};
  if (code == ENOENT) error.advice = "check the path; relative ones start at the working directory";
  if (code == EMFILE) error.advice = "close files, or raise the limit (ulimit -n)";
  if (code == EACCES || code == EPERM)
    error.advice = "check the owner and mode of file and folders";
  return error;
}

Error wrong_type(const std::string& path, const char* type, int code) {
  return {ErrorKind::wrong_file_type,
          ErrorOrigin::system,
          code,
          "open",
          path,
          {},
          std::string("it is a ") + type,
          "give a regular file or a block device"};
}

// What is no file with offsets is refused before anything is read from it or waits for it.
Result<void> check_type(const std::string& path, mode_t mode) {
  if (S_ISREG(mode) || S_ISBLK(mode)) return {};
  if (S_ISDIR(mode)) return wrong_type(path, "directory", EISDIR);
  if (S_ISFIFO(mode)) return wrong_type(path, "FIFO", ESPIPE);
  if (S_ISSOCK(mode)) return wrong_type(path, "socket", ESPIPE);
  if (S_ISCHR(mode)) return wrong_type(path, "character device", ESPIPE);
  return wrong_type(path, "special file", ESPIPE);
}

struct Mode {
  int flags = 0;
  bool truncate = false;
};

Result<Mode> parse_mode(std::string_view text) {
  std::string plain;
  int binary = 0;
  for (const char c : text) c == 'b' ? void(++binary) : plain.push_back(c);
  if (binary <= 1) {
    if (plain == "r") return Mode{O_RDONLY, false};
    if (plain == "r+") return Mode{O_RDWR, false};
    if (plain == "w") return Mode{O_WRONLY | O_CREAT, true};
    if (plain == "w+") return Mode{O_RDWR | O_CREAT, true};
    if (plain == "x") return Mode{O_WRONLY | O_CREAT | O_EXCL, false};
    if (plain == "x+") return Mode{O_RDWR | O_CREAT | O_EXCL, false};
  }
  return Error{ErrorKind::invalid_argument,
               ErrorOrigin::straightway,
               0,
               "open with mode '" + std::string(text) + "'",
               "",
               {},
               "there is no such mode",
               "use 'r', 'r+', 'w', 'w+', 'x' or 'x+', with an optional 'b'"};
}

Result<void> check_path(const std::string& path) {
  if (!path.empty() && path.find('\0') == std::string::npos) return {};
  return Error{ErrorKind::invalid_argument,
               ErrorOrigin::straightway,
               0,
               "open",
               path,
               {},
               path.empty() ? "the path is empty" : "the path holds a NUL byte",
               ""};
}

// A slow file system's open may be interrupted by the program's signals.
int open_uninterrupted(const os::Syscalls& syscalls, const char* path, int flags, unsigned mode) {
  int result = syscalls.open(path, flags, mode);
  while (result == -EINTR) result = syscalls.open(path, flags, mode);
  return result;
}

// The same file without O_DIRECT, which would refuse most offsets and sizes. The caller's own
// descriptor shares its flags with every duplicate, so it is opened anew.
Result<os::Descriptor> reopen_plain(int fd, int flags, const std::string& name,
                                    const Engine& engine) {
  const auto link = "/proc/self/fd/" + std::to_string(fd);
  const int result = open_uninterrupted(engine.syscalls(), link.c_str(),
                                        (flags & O_ACCMODE) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
  os::Descriptor plain(result);
  if (plain) return plain;
  auto error = open_error(name, result < 0 ? -result : errno);
  error.attempted = "open without O_DIRECT";
  error.advice =
      "open the file without O_DIRECT; reads and writes that bypass the page cache "
      "are an option of each call";
  return error;
}

// Whether the next try may go better: the refusal says nothing of the file.
bool may_pass(int code) { return code == EMFILE || code == ENFILE || code == ENOMEM; }

std::shared_ptr<const Settings> settings_of(const Engine& engine, const OpenOptions& options) {
  if (!options.policy && !options.cache) return engine.settings();
  auto settings = std::make_shared<Settings>(*engine.settings());
  if (options.policy) settings->policy = {*options.policy, Origin::api};
  if (options.cache) settings->cache = {*options.cache, Origin::api};
  return settings;
}

}  // namespace

Result<std::shared_ptr<OpenFile>> OpenFile::open(const std::string& path, std::string_view mode,
                                                 const OpenOptions& options,
                                                 std::shared_ptr<Engine> engine) {
  const auto parsed = parse_mode(mode);
  if (!parsed) return parsed.error();
  if (auto checked = check_path(path); !checked) return checked.error();
  // O_NONBLOCK: a FIFO without a writer must not hang the caller before it is refused.
  const int result = open_uninterrupted(engine->syscalls(), path.c_str(),
                                        parsed->flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
  struct stat status{};
  if (result < 0) {
    if (result == -ENXIO || result == -EISDIR) {  // a FIFO or socket; a directory to write
      if (::stat(path.c_str(), &status) == 0) {
        if (auto type = check_type(path, status.st_mode); !type) return type.error();
      }
    }
    return open_error(path, -result);
  }
  os::Descriptor fd(result);
  if (!fd) return open_error(path, errno);
  if (::fstat(fd.get(), &status) != 0) return open_error(path, errno);
  if (auto type = check_type(path, status.st_mode); !type) return type.error();
  if (parsed->truncate && S_ISREG(status.st_mode) && ::ftruncate(fd.get(), 0) != 0) {
    return open_error(path, errno);
  }
  ::fcntl(fd.get(), F_SETFL, 0);  // O_NONBLOCK has done its work
  return finish(std::move(fd), path, options, std::move(engine));
}

Result<std::shared_ptr<OpenFile>> OpenFile::adopt(int fd, const OpenOptions& options,
                                                  std::shared_ptr<Engine> engine) {
  const std::string name = "fd " + std::to_string(fd);
  const int flags = fd < 0 ? -1 : ::fcntl(fd, F_GETFL);
  if (flags < 0) return open_error(name, fd < 0 ? EBADF : errno);
  struct stat status{};
  if (::fstat(fd, &status) != 0) return open_error(name, errno);
  if (auto type = check_type(name, status.st_mode); !type) return type.error();
  const char* refused = (flags & O_PATH)     ? "it was opened with O_PATH, which allows no I/O"
                        : (flags & O_APPEND) ? "it was opened with O_APPEND, which ignores offsets"
                                             : nullptr;
  if (refused != nullptr) {
    return Error{ErrorKind::invalid_argument,
                 ErrorOrigin::straightway,
                 0,
                 "use the descriptor",
                 name,
                 {},
                 refused,
                 "open the file without that flag"};
  }
  if ((flags & O_DIRECT) != 0) {
    auto plain = reopen_plain(fd, flags, name, *engine);
    if (!plain) return plain.error();
    return finish(std::move(*plain), name, options, std::move(engine));
  }
  os::Descriptor own(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!own) return open_error(name, errno);
  return finish(std::move(own), name, options, std::move(engine));
}

Result<std::shared_ptr<OpenFile>> OpenFile::finish(os::Descriptor fd, const std::string& path,
                                                   const OpenOptions& options,
                                                   std::shared_ptr<Engine> engine) {
  auto open = std::make_shared<OpenFile>();
  open->facts =
      std::make_shared<const FileFacts>(os::read_file_facts(fd.get(), path, engine->root()));
  open->settings = settings_of(*engine, options);
  open->door = options.door;
  open->access = ::fcntl(fd.get(), F_GETFL) & O_ACCMODE;
  open->generation_ = engine->generation();
  open->engine = std::move(engine);
  open->fd_ = std::move(fd);
  return open;
}

bool OpenFile::begin() {
  if ((users_.fetch_add(1) & closed_bit) == 0) return true;
  end();
  return false;
}

void OpenFile::end() {
  if (users_.fetch_sub(1) != (closed_bit | 1)) return;
  if (last_closes_.load()) close_descriptors();
  users_.notify_all();
}

void OpenFile::close() {
  const bool can_wait = !engine->on_own_thread();
  if (!can_wait) last_closes_.store(true);
  users_.fetch_or(closed_bit);
  // In a forked child the parent's transfers never end; they are not this process's.
  if (engine->generation() == generation_) {
    if (!can_wait && users_.load() != closed_bit) return;
    for (auto now = users_.load(); now != closed_bit; now = users_.load()) users_.wait(now);
  }
  close_descriptors();
}

void OpenFile::close_descriptors() {
  if (descriptors_closed_.exchange(true)) return;
  // No copy uses them any more. In a forked child they are the parent's.
  if (has_pins_ && engine->generation() == generation_) pins_->close(false);
  // Before its descriptor: the library still knows it.
  if (has_cufile_.load()) {
    engine->generation() == generation_ ? cufile_->close() : cufile_->abandon();
  }
  os::Descriptor direct(direct_fd_.exchange(-1));
  direct.reset();
  fd_.reset();
}

Result<std::uint64_t> OpenFile::size() const { return os::file_size(fd_.get(), facts->path); }

Result<os::FileStamp> OpenFile::stamp() const {
  auto stamp = os::read_stamp(fd_.get());
  if (stamp) return stamp;
  auto error = stamp.error();
  error.path = facts->path;
  return error;
}

os::FileStorage OpenFile::storage() {
  if (!storage_known_.load(std::memory_order_acquire)) {
    const auto found = os::file_storage(fd_.get());
    storage_device_.store(found.device, std::memory_order_relaxed);
    storage_mount_.store(found.mount, std::memory_order_relaxed);
    storage_known_.store(true, std::memory_order_release);
  }
  return {storage_device_.load(std::memory_order_relaxed),
          storage_mount_.load(std::memory_order_relaxed)};
}

transport::FileRef OpenFile::ref(bool with_direct) {
  if (!with_direct) return {fd_.get(), -1, pins()};
  const int code = direct_code_.load();
  if (direct_fd_.load() < 0 && (code == 0 || may_pass(code))) open_direct();
  return {fd_.get(), direct_fd_.load(), pins(), cufile()};
}

std::shared_ptr<transport::CufileFile> OpenFile::cufile() const {
  return has_cufile_.load(std::memory_order_acquire) ? cufile_ : nullptr;
}

bool OpenFile::register_with(const std::shared_ptr<transport::CufileLibrary>& library) {
  if (has_cufile_.load(std::memory_order_acquire)) return true;
  if (vendor_code_.load() != 0) return false;
  const std::lock_guard lock(cufile_mutex_);
  if (has_cufile_.load() || vendor_code_.load() != 0) return has_cufile_.load();
  auto made = transport::CufileFile::make(library, direct_fd_.load());
  if (made) {
    cufile_ = std::move(*made);
    has_cufile_.store(true, std::memory_order_release);
    return true;
  }
  vendor_code_.store(made.error().code != 0 ? made.error().code : EIO);
  engine->warn("the vendor's cuFile library refused '" + facts->path + "' (" + made.error().why +
               "); its bytes go another way");
  return false;
}

// The same file again, with O_DIRECT: through /proc, which follows no path, else (no /proc) through
// the path, when that still is this file. Threads may be here at the same time.
void OpenFile::open_direct() {
  const auto link = "/proc/self/fd/" + std::to_string(fd_.get());
  int code = try_direct(link);
  if (code != 0 && !may_pass(code)) {
    const int by_path = try_direct(facts->path);
    // ENOENT says nothing of O_DIRECT: no /proc here, or a file without a name.
    if (by_path != ENOENT) code = by_path;
  }
  if (code == 0) return;
  direct_code_.store(code);
  if (!warned_of_direct_.exchange(true)) warn_of_direct();
}

// 0, or the errno. ESTALE: another file has that path now.
int OpenFile::try_direct(const std::string& path) {
  const int flags = access | O_DIRECT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  const int result = open_uninterrupted(engine->syscalls(), path.c_str(), flags, 0);
  if (result < 0) return -result;
  os::Descriptor direct(result);
  if (!direct) return errno;
  struct stat ours{};
  struct stat theirs{};
  if (::fstat(fd_.get(), &ours) != 0 || ::fstat(direct.get(), &theirs) != 0) return errno;
  if (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino) return ESTALE;
  int none = -1;  // else another thread was quicker, and ours closes
  if (direct_fd_.compare_exchange_strong(none, direct.get())) direct.release();
  return 0;
}

void OpenFile::warn_of_direct() const {
  engine->warn("cannot open '" + facts->path + "' with O_DIRECT: " + os::errno_text(direct_code()) +
               "; its bytes go through the page cache");
}

Result<void> OpenFile::allows(Direction direction) const {
  if (access == O_RDWR || access == (direction == Direction::read ? O_RDONLY : O_WRONLY)) return {};
  return Error{ErrorKind::permission,
               ErrorOrigin::system,
               EBADF,
               to_string(direction),
               facts->path,
               {},
               direction == Direction::read ? "the file was opened for writing only"
                                            : "the file was opened for reading only",
               direction == Direction::read ? "open it with mode 'r', 'r+' or 'w+'"
                                            : "open it with mode 'r+', 'w' or 'x'"};
}

}  // namespace straightway
