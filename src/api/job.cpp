#include "api/job.hpp"

#include <cerrno>
#include <utility>

namespace straightway {
namespace {

Error no_job() {
  return {ErrorKind::closed,
          ErrorOrigin::straightway,
          0,
          "wait for a job",
          "",
          {},
          "this Job is empty",
          "use the one that submit_read or submit_write returned"};
}

Error parents_job() {
  return {ErrorKind::forked,
          ErrorOrigin::straightway,
          0,
          "wait for a job",
          "",
          {},
          "it belongs to the parent process",
          "submit it again in this process"};
}

// A clock that counts nanoseconds overflows somewhere behind this.
constexpr std::chrono::nanoseconds longest_timeout = std::chrono::hours(24 * 365);

Error would_wait_for_itself() {
  auto error = calls_itself_error("wait for a job");
  error.advice = "use on_done, or wait on another thread";
  return error;
}

// What a callback throws has nowhere to go: the thread belongs to all transfers.
void call_back(const std::function<void()>& callback) {
  try {
    callback();
  } catch (...) {
  }
}

Error still_running(std::chrono::nanoseconds timeout) {
  return {ErrorKind::deadline_exceeded,
          ErrorOrigin::system,
          ETIMEDOUT,
          "wait for a job",
          "",
          {},
          "it is still running after " + std::to_string(timeout.count() / 1'000'000) + " ms",
          "wait again, or cancel it"};
}

}  // namespace

void Job::State::settle(Result<Receipt> outcome, const std::function<void()>& let_go) {
  owner.reset();  // before anybody is told: whoever waits may count on it
  const std::lock_guard lock(mutex);
  let_go();  // under the lock: whoever waited for the files finds the job done
  result.emplace(std::move(outcome));
  if (result->ok()) {
    moved_bytes = (**result).moved_bytes;
  } else if (order) {
    moved_bytes = order->moved_bytes.load();
  }
  order.reset();
}

void Job::State::tell() {
  finished.notify_all();
  for (;;) {
    std::vector<std::function<void()>> ready;
    {
      const std::lock_guard lock(mutex);
      told = callbacks.empty();
      if (told) return;
      ready.swap(callbacks);
    }
    for (const auto& callback : ready) call_back(callback);
  }
}

Result<Receipt> Job::result(std::optional<std::chrono::nanoseconds> timeout) const {
  if (!state_) return no_job();
  if (state_->forked()) return parents_job();
  // Before the lock: the engine may end with this look, and waits for whoever wants the lock.
  const bool in_callback = state_->on_drivers_thread();
  std::unique_lock lock(state_->mutex);
  const auto is_done = [this] { return state_->result.has_value(); };
  if (in_callback && !is_done()) return would_wait_for_itself();
  if (!timeout || *timeout > longest_timeout) {
    state_->finished.wait(lock, is_done);
  } else if (!state_->finished.wait_for(lock, *timeout, is_done)) {
    return still_running(*timeout);
  }
  return *state_->result;
}

bool Job::done() const {
  if (!state_ || state_->forked()) return true;
  const std::lock_guard lock(state_->mutex);
  return state_->result.has_value();
}

bool Job::cancel() const {
  if (!state_ || state_->forked()) return false;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->result || !state_->order) return false;
    state_->order->cancelled.store(true);
  }
  if (const auto engine = state_->engine.lock()) engine->wake_pump();
  return true;
}

void Job::on_done(std::function<void()> callback) const {
  if (!state_ || state_->forked()) return call_back(callback);
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->told) {  // also when it is done already: in the order in which they were given
      state_->callbacks.push_back(std::move(callback));
      return;
    }
  }
  call_back(callback);
}

Progress Job::progress() const {
  if (!state_ || state_->forked()) return {};
  const std::lock_guard lock(state_->mutex);
  if (state_->result) return {state_->moved_bytes, state_->wanted_bytes};
  return {state_->order ? state_->order->moved_bytes.load() : 0, state_->wanted_bytes};
}

}  // namespace straightway
