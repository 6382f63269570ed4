#pragma once
// The one object on which drive/ blocks, and that every transport signals: an eventfd that also
// io_uring can write to.

#include <atomic>
#include <cstdint>
#include <memory>

#include "straightway/result.hpp"

namespace straightway::transport {

class Wake {
 public:
  static Result<std::unique_ptr<Wake>> create();
  ~Wake();
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;

  // From any thread. Costs a system call only while somebody waits.
  void signal() noexcept;
  // One waiter at a time. Returns when signalled since the last wait, or after timeout_ns
  // (UINT64_MAX: none).
  void wait(std::uint64_t timeout_ns) noexcept;
  int descriptor() const { return fd_; }

 private:
  explicit Wake(int fd) : fd_(fd) {}
  int fd_;
  std::atomic<bool> signalled_{false};
  std::atomic<bool> waiting_{false};
};

}  // namespace straightway::transport
