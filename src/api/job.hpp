#pragma once
// The state that a Job's handles and the pump share.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "api/engine.hpp"
#include "drive/pump.hpp"
#include "straightway/file.hpp"

namespace straightway {

struct Job::State {
  // Releases the owner, lets go of the files and sets the result, all at once for who looks on.
  void settle(Result<Receipt> outcome, const std::function<void()>& let_go);
  // Then: wakes who waits, and calls the callbacks, also those that come while it does.
  void tell();
  bool forked() const {
    const auto alive = engine.lock();
    return alive && alive->generation() != generation;
  }

  bool on_drivers_thread() const {
    const auto alive = engine.lock();
    return alive && alive->on_own_thread();
  }

  std::weak_ptr<Engine> engine;  // the file keeps it alive; a job that is done needs it no more
  std::uint32_t generation = 0;
  std::shared_ptr<drive::Order> order;  // null when it was done at once
  std::uint64_t wanted_bytes = 0;
  std::uint64_t moved_bytes = 0;  // once it is settled
  std::shared_ptr<void> owner;    // kept until drained

  std::mutex mutex;
  std::condition_variable finished;
  std::optional<Result<Receipt>> result;
  std::vector<std::function<void()>> callbacks;
  bool told = false;  // all callbacks so far were called
};

}  // namespace straightway
