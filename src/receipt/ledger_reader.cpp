// Reads other processes' ledgers. What stands there is hostile input: another program may show any
// bytes under the same name.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "os/descriptor.hpp"
#include "receipt/ledger.hpp"
#include "receipt/ledger_layout.hpp"

namespace straightway::receipt {
namespace {

// A process has one ledger for each Context; more names than this are not worth a look.
constexpr std::size_t candidate_limit = 256;

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

Error no_ledger(std::int64_t pid) {
  return cannot_read(pid, ErrorKind::not_found, "it publishes none",
                     "it must have used Straightway, with STRAIGHTWAY_LEDGER not 0");
}

Error others(std::int64_t pid, int code) {
  return cannot_read(pid, ErrorKind::permission, "it belongs to another user",
                     "read them as the user who runs it", code);
}

Error pretender(std::int64_t pid, const char* what) {
  return cannot_read(pid, ErrorKind::wrong_file_type,
                     std::string("a file has the name of a ledger, but ") + what,
                     "that program is not Straightway");
}

Error from_errno(std::int64_t pid, int code) {
  if (code == EACCES || code == EPERM) return others(pid, code);
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

// The names in /proc/PID/fd whose links look like ledgers.
Result<std::vector<std::string>> find_candidates(std::int64_t pid, const Directory& directory) {
  if (!directory.open()) return from_errno(pid, errno);
  std::vector<std::string> found;
  while (const char* name = directory.next()) {
    char link[64];
    const ssize_t size = ::readlinkat(directory.descriptor(), name, link, sizeof(link));
    if (size <= 0) continue;
    if (!std::string_view(link, static_cast<std::size_t>(size)).starts_with(ledger_link_prefix))
      continue;
    found.emplace_back(name);
    if (found.size() == candidate_limit) break;
  }
  return found;
}

// Looks before it opens: the descriptor may be something else by now, and opening some devices or
// FIFOs has effects or blocks. O_PATH has none.
Result<os::Descriptor> open_candidate(std::int64_t pid, int directory, const std::string& name) {
  os::Descriptor path(::openat(directory, name.c_str(), O_PATH | O_CLOEXEC));
  if (!path) return from_errno(pid, errno);
  struct stat status{};
  struct statfs filesystem{};
  if (::fstat(path.get(), &status) != 0) return from_errno(pid, errno);
  if (::fstatfs(path.get(), &filesystem) != 0) return from_errno(pid, errno);
  if (!S_ISREG(status.st_mode)) return pretender(pid, "it is no regular file");
  if (filesystem.f_type != TMPFS_MAGIC) return pretender(pid, "it does not lie in memory");
  if (status.st_uid != ::geteuid()) return others(pid, 0);
  const std::string again = "/proc/self/fd/" + std::to_string(path.get());
  os::Descriptor fd(::open(again.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return from_errno(pid, errno);
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

// Copies by pread, not by mmap: nothing that the writer does to the file can kill this process.
Result<std::unique_ptr<LedgerLayout>> copy_layout(std::int64_t pid, int fd) {
  if (!is_sealed(fd)) return pretender(pid, "it is not sealed");
  struct stat status{};
  if (::fstat(fd, &status) != 0) return from_errno(pid, errno);
  LedgerHeader header;
  if (!read_fully(fd, &header, sizeof(header))) return pretender(pid, "it is too short");
  if (header.magic != ledger_magic) return pretender(pid, "it does not begin like one");
  if (header.version != layout_version) {
    return cannot_read(pid, ErrorKind::unsupported,
                       "its layout is of version " + std::to_string(header.version) +
                           ", this program reads version " + std::to_string(layout_version),
                       "use the `straightway` of the version that the process uses");
  }
  const auto size_bytes = static_cast<std::uint64_t>(status.st_size);
  if (header.size_bytes != sizeof(LedgerLayout) || size_bytes != sizeof(LedgerLayout)) {
    return pretender(pid, "its size is wrong");
  }
  auto layout = std::make_unique<LedgerLayout>();
  if (!read_fully(fd, layout.get(), sizeof(LedgerLayout))) return pretender(pid, "it is too short");
  return layout;
}

// Whether the process of this pid calls itself `inner`: the same, or its name in a pid namespace.
// A forked child still holds its parent's ledger, which must not count as the child's.
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

void add(std::uint64_t& sum, std::uint64_t value) {
  if (__builtin_add_overflow(sum, value, &sum)) sum = std::numeric_limits<std::uint64_t>::max();
}

void add_stripe(LedgerSnapshot& sum, const LedgerStripe& stripe) {
  for (std::size_t way = 0; way < 2; ++way) {
    for (std::size_t i = 0; i < route_count; ++i) {
      add(sum.bytes[i][way], stripe.routes[way][i].bytes);
      add(sum.segments[i][way], stripe.routes[way][i].segments);
    }
    for (std::size_t i = 0; i < size_class_count; ++i) {
      add(sum.sizes[i][way].requests, stripe.sizes[way][i].requests);
      add(sum.sizes[i][way].bytes, stripe.sizes[way][i].bytes);
      add(sum.sizes[i][way].time_ns, stripe.sizes[way][i].time_ns);
    }
    for (std::size_t i = 0; i < latency_class_count; ++i) {
      add(sum.latencies[i][way], stripe.latencies[way][i]);
    }
    add(sum.errors[way], stripe.errors[way]);
  }
  add(sum.retries, stripe.retries);
  add(sum.fallbacks, stripe.fallbacks);
  add(sum.short_reads, stripe.short_reads);
  add(sum.layer.n, stripe.layer_n);
  add(sum.layer.nvfs, stripe.layer_nvfs);
  add(sum.layer.p2pdma, stripe.layer_p2pdma);
  add(sum.layer.posix, stripe.layer_posix);
}

// Fit for a terminal: what is not printable ASCII becomes '?'.
std::string printable(const std::array<char, 88>& program) {
  std::string text;
  for (const char c : program) {
    if (c == '\0') break;
    text += c >= 0x20 && c < 0x7f ? c : '?';
  }
  return text;
}

void add_layout(LedgerSnapshot& sum, const LedgerLayout& layout) {
  if (sum.started_ns == 0 || layout.started_ns < sum.started_ns) sum.started_ns = layout.started_ns;
  if (sum.program.empty()) sum.program = printable(layout.program);
  for (const LedgerStripe& stripe : layout.stripes) add_stripe(sum, stripe);
}

std::string proc_path(std::int64_t pid, const char* name) {
  return "/proc/" + std::to_string(pid) + name;
}

}  // namespace

Result<LedgerSnapshot> read_ledger(std::int64_t pid) {
  if (pid <= 0) return cannot_read(pid, ErrorKind::invalid_argument, "a process number is above 0");
  const Directory directory(proc_path(pid, "/fd").c_str());
  Result<std::vector<std::string>> candidates = find_candidates(pid, directory);
  if (!candidates) return candidates.error();
  LedgerSnapshot sum;
  std::optional<Error> failure;
  for (const std::string& name : *candidates) {
    Result<os::Descriptor> fd = open_candidate(pid, directory.descriptor(), name);
    if (!fd) {
      if (!failure) failure = fd.error();
      continue;
    }
    Result<std::unique_ptr<LedgerLayout>> layout = copy_layout(pid, fd->get());
    if (!layout) {
      if (!failure) failure = layout.error();
      continue;
    }
    if (!is_own(pid, (*layout)->pid)) continue;
    sum.pid = pid;
    add_layout(sum, **layout);
  }
  if (sum.pid != 0) return sum;
  return failure ? *failure : no_ledger(pid);
}

std::vector<std::int64_t> find_ledgers() {
  std::vector<std::int64_t> pids;
  const Directory processes("/proc");
  if (!processes.open()) return pids;
  while (const char* name = processes.next()) {
    const std::optional<std::int64_t> pid = parse_number(name);
    if (!pid || *pid == 0) continue;
    struct stat status{};
    if (::fstatat(processes.descriptor(), name, &status, 0) != 0) continue;
    if (status.st_uid != ::geteuid()) continue;
    const Result<LedgerSnapshot> snapshot = read_ledger(*pid);
    // One of another version counts: whoever reads it next is told so.
    if (snapshot || snapshot.error().kind == ErrorKind::unsupported) pids.push_back(*pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

}  // namespace straightway::receipt
