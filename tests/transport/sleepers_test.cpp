#include "transport/sleepers.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace straightway::transport {
namespace {

TEST(SleepersTest, EachCallWakesOneAndTheStopAll) {
  std::mutex mutex;
  Sleepers sleepers;
  int woken = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&](const std::stop_token& stop) {
      std::unique_lock lock(mutex);
      sleepers.sleep(lock, stop);
      ++woken;
    });
  }
  const auto wait_for = [&](auto condition) {
    for (;;) {
      const std::lock_guard lock(mutex);
      if (condition()) return;
      std::this_thread::yield();
    }
  };
  wait_for([&] { return sleepers.asleep() == 4; });
  {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(sleepers.call(1), 1U);
    EXPECT_EQ(sleepers.asleep(), 3U);  // at once, before it is awake
    EXPECT_EQ(sleepers.call(2), 2U);
  }
  wait_for([&] { return woken == 3; });
  for (auto& thread : threads) thread.request_stop();
  threads.clear();
  EXPECT_EQ(woken, 4);
  EXPECT_EQ(sleepers.asleep(), 0U);
  EXPECT_EQ(sleepers.call(5), 0U);  // nobody is there
}

}  // namespace
}  // namespace straightway::transport
