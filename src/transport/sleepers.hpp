#pragma once
// Threads that sleep until somebody calls them, each call waking one. The lock of what they share
// is held in every function.

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>

namespace straightway::transport {

class Sleepers {
 public:
  // Returns when called, or when it is to stop.
  void sleep(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
    ++asleep_;
    wake_.wait(lock, stop, [this] { return called_ > 0; });
    --(called_ > 0 ? called_ : asleep_);
  }
  // Wakes as many as there are, up to count; how many.
  std::uint32_t call(std::uint64_t count) {
    const auto calls = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, asleep_));
    asleep_ -= calls;
    called_ += calls;
    for (auto i = calls; i > 0; --i) wake_.notify_one();
    return calls;
  }
  // Those that nobody has called yet.
  std::uint32_t asleep() const { return asleep_; }

 private:
  std::condition_variable_any wake_;
  std::uint32_t asleep_ = 0;
  std::uint32_t called_ = 0;
};

}  // namespace straightway::transport
