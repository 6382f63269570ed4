#pragma once
// A kernel with bad days: the real system calls, of which a test makes some fail, stop short or
// come late. One at a time in a process; it outlives the contexts that are made over it.

#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "api/engine.hpp"
#include "os/syscalls.hpp"
#include "straightway/file.hpp"

namespace straightway::tests {

struct Attempt {
  Direction direction = Direction::read;
  int fd = -1;
  std::uint64_t offset = 0;
  std::size_t size_bytes = 0;
};

class BadKernel {
 public:
  BadKernel() { active().store(this); }
  ~BadKernel() { active().store(nullptr); }
  BadKernel(const BadKernel&) = delete;
  BadKernel& operator=(const BadKernel&) = delete;

  // Each is asked before the real call, from any thread, and answers in its place, or not. on_move
  // may make the attempt shorter.
  std::function<std::optional<std::int64_t>(Attempt&)> on_move;
  std::function<std::optional<int>(const std::string& path, int flags)> on_open;
  std::function<std::optional<int>()> on_sync;

  std::atomic<int> moves{0};      // calls of pread and pwrite so far
  std::atomic<int> in_flight{0};  // and those that did not return yet

  std::shared_ptr<Context> context(const ContextOptions& options = {}) {
    return Context::around(std::move(Engine::create(options, table())).value());
  }

 private:
  static std::atomic<BadKernel*>& active() {
    static std::atomic<BadKernel*> kernel{nullptr};
    return kernel;
  }

  template <class Real>
  std::int64_t move(Attempt attempt, Real real) {
    ++moves;
    ++in_flight;
    std::optional<std::int64_t> answer;
    if (on_move) answer = on_move(attempt);
    const auto result = answer ? *answer : real(attempt.size_bytes);
    --in_flight;
    return result;
  }

  static std::int64_t pread(int fd, void* to, std::size_t size, std::uint64_t offset) {
    return active().load()->move({Direction::read, fd, offset, size}, [&](std::size_t less) {
      return os::kernel().pread(fd, to, less, offset);
    });
  }
  static std::int64_t pwrite(int fd, const void* from, std::size_t size, std::uint64_t offset) {
    return active().load()->move({Direction::write, fd, offset, size}, [&](std::size_t less) {
      return os::kernel().pwrite(fd, from, less, offset);
    });
  }
  static int open(const char* path, int flags, unsigned mode) {
    auto& kernel = *active().load();
    const auto answer = kernel.on_open ? kernel.on_open(path, flags) : std::nullopt;
    return answer ? *answer : os::kernel().open(path, flags, mode);
  }
  static int fdatasync(int fd) { return sync(fd, os::kernel().fdatasync); }
  static int fsync(int fd) { return sync(fd, os::kernel().fsync); }
  static int sync(int fd, int (*real)(int)) {
    auto& kernel = *active().load();
    const auto answer = kernel.on_sync ? kernel.on_sync() : std::nullopt;
    return answer ? *answer : real(fd);
  }
  static const os::Syscalls& table() {
    static const os::Syscalls bad = {pread,
                                     pwrite,
                                     open,
                                     fdatasync,
                                     fsync,
                                     os::kernel().fallocate,
                                     os::kernel().truncate,
                                     os::kernel().statx,
                                     os::kernel().pread_dontcache,
                                     os::kernel().cached_pages,
                                     os::kernel().drop_pages};
    return bad;
  }
};

// Interrupts at random, and moves 1 to all of the bytes: what every transfer has to survive.
inline std::function<std::optional<std::int64_t>(Attempt&)> storm(std::uint64_t seed) {
  return [seed, count = std::make_shared<std::atomic<std::uint64_t>>(0)](
             Attempt& attempt) -> std::optional<std::int64_t> {
    std::minstd_rand random(static_cast<unsigned>(seed * 7919 + ++*count));
    random.discard(3);
    if (random() % 3 == 0) return -EINTR;
    const auto parts = 1 + random() % 4;
    if (random() % 2 == 0)
      attempt.size_bytes = std::max<std::size_t>(1, attempt.size_bytes / parts);
    if (random() % 5 == 0) attempt.size_bytes = 1 + random() % attempt.size_bytes;
    return std::nullopt;
  };
}

}  // namespace straightway::tests
