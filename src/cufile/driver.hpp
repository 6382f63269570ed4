#pragma once
// The driver as programs see it: opened by a call or by the first use, counted, closed.

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "cufile/abi.hpp"
#include "cufile/parameters.hpp"
#include "cufile/session.hpp"

namespace straightway::cufile {

// A session, or why there is none.
struct Opened {
  std::shared_ptr<Session> session;
  abi::Code code = abi::success;
};

class Driver {
 public:
  explicit Driver(Configuration::Environment environment) : environment_(std::move(environment)) {}

  // cuFileDriverOpen and cuFileDriverClose.
  abi::Code open();
  abi::Code close();
  long use_count() const { return use_count_.load(); }

  std::shared_ptr<Session> session() const;  // null while closed
  Opened use();                              // opens it where it is closed
  bool was_open() const { return was_open_.load(); }

  // The cuFileDriverSet family, before the open or after it; forgotten at the close.
  abi::Code set_max_direct_io_kb(std::uint64_t size_kb);
  abi::Code set_max_pinned_kb(std::uint64_t size_kb);

  // Runs with what is staged and the running configuration (null while closed).
  template <class F>
  abi::Code with_parameters(F f) {
    const std::lock_guard lock(opening_);
    const auto running = session();
    return f(staged_, running ? &running->config : nullptr);
  }

  int stats_level() const;
  abi::Code set_stats_level(int level);
  // What cuFileGetVersion answers, and the layout of the statistics: 1000 x major + 10 x minor.
  int version();

 private:
  Opened use_locked();
  Opened open_locked();
  Result<std::shared_ptr<Context>> context_locked();
  void warn(std::string_view text) const;

  const Configuration::Environment environment_;
  std::mutex opening_;
  mutable std::shared_mutex session_mutex_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<Context> context_;  // one for the process, over all sessions
  std::atomic<long> use_count_{0};
  std::atomic<bool> was_open_{false};
  Staged staged_;
  std::uint64_t staged_max_direct_kb_ = 0;  // 0: not set
  std::uint64_t staged_max_pinned_kb_ = 0;
  std::atomic<int> stats_level_{-1};  // set while closed; -1: not set
  std::atomic<int> version_{0};
};

}  // namespace straightway::cufile
