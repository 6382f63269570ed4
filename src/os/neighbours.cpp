#include "os/neighbours.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>

namespace straightway::os {
namespace {

// Process n's word begins at byte n times this, which is also the most that it can say.
constexpr std::int64_t room = 1024;
constexpr std::int64_t most_processes = std::int64_t{1} << 22;  // the kernel's limit of numbers
// For each neighbour two questions; more, or slower ones (somebody may hold a million locks), are
// not worth the time.
constexpr int most_questions = 256;
constexpr auto longest_look = std::chrono::milliseconds(1);

struct Span {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct flock lock_of(int type, const Span& span) {
  struct flock lock{};
  lock.l_type = static_cast<short>(type);
  lock.l_whence = SEEK_SET;
  lock.l_start = span.begin;
  lock.l_len = span.end - span.begin;
  return lock;
}

Span span_of(std::int64_t pid, std::int64_t copiers) {
  return {pid * room, pid * room + std::clamp<std::int64_t>(copiers, 1, room)};
}

std::string folder_of(std::int64_t pid) { return "/proc/" + std::to_string(pid); }

bool is_of_this_user(std::int64_t pid) {
  struct stat status{};
  return ::stat(folder_of(pid).c_str(), &status) == 0 && status.st_uid == ::geteuid();
}

// True where the kernel does not say.
bool shares_cpus(std::int64_t pid) {
  cpu_set_t mine, its, both;
  if (::sched_getaffinity(0, sizeof mine, &mine) != 0) return true;
  if (::sched_getaffinity(static_cast<pid_t>(pid), sizeof its, &its) != 0) return true;
  CPU_AND(&both, &mine, &its);
  return CPU_COUNT(&both) > 0;
}

std::string cgroup_of(const std::string& folder) {
  std::ifstream file(folder + "/cgroup");
  return {std::istreambuf_iterator<char>(file), {}};
}

bool shares_quota(std::int64_t pid) { return cgroup_of(folder_of(pid)) == cgroup_of("/proc/self"); }

// The process whose own word this lock is; 0: it is none, or one out of another namespace.
std::int64_t speaker(const struct flock& lock) {
  const std::int64_t pid = lock.l_pid;
  const bool own = pid > 0 && lock.l_start == pid * room && lock.l_len > 0 && lock.l_len <= room;
  return own ? pid : 0;
}

}  // namespace

int Neighbours::file() {
  const std::lock_guard lock(opening_);
  if (!file_) file_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  return file_.get();
}

void Neighbours::announce(std::uint32_t copiers) {
  const auto word = span_of(::getpid(), copiers);
  auto lock = lock_of(F_RDLCK, word);
  ::fcntl(file(), F_SETLK, &lock);
  const Span rest{word.end, (::getpid() + std::int64_t{1}) * room};
  if (rest.begin == rest.end) return;
  lock = lock_of(F_UNLCK, rest);  // what an earlier word said beyond this one
  ::fcntl(file(), F_SETLK, &lock);
}

void Neighbours::withdraw() {
  auto lock = lock_of(F_UNLCK, span_of(::getpid(), room));
  ::fcntl(file(), F_SETLK, &lock);
}

// The kernel tells of one lock that a range meets; what lies before and behind it is asked for
// again.
std::vector<std::uint32_t> Neighbours::look(bool same_quota) {
  std::vector<std::uint32_t> found;
  std::vector<std::int64_t> known;  // locks of others can cut a word into several answers
  std::vector<Span> unasked{{0, most_processes * room}};
  const auto end = std::chrono::steady_clock::now() + longest_look;
  for (int i = 0; i < most_questions && !unasked.empty(); ++i) {
    if (std::chrono::steady_clock::now() > end) break;
    const auto span = unasked.back();
    unasked.pop_back();
    auto lock = lock_of(F_WRLCK, span);
    if (::fcntl(file(), F_GETLK, &lock) != 0) break;
    if (lock.l_type == F_UNLCK) continue;
    if (lock.l_start > span.begin) unasked.push_back({span.begin, lock.l_start});
    const auto behind = lock.l_start + lock.l_len;  // no length: it never ends
    if (lock.l_len > 0 && behind < span.end) unasked.push_back({behind, span.end});
    const auto pid = speaker(lock);
    if (pid == 0 || std::find(known.begin(), known.end(), pid) != known.end()) continue;
    known.push_back(pid);
    if (!is_of_this_user(pid) || !shares_cpus(pid)) continue;
    if (same_quota && !shares_quota(pid)) continue;
    found.push_back(static_cast<std::uint32_t>(lock.l_len));
  }
  return found;
}

}  // namespace straightway::os
