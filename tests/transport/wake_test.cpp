#include "transport/wake.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace straightway::transport {
namespace {

TEST(Wake, ASignalBeforeTheWaitIsNotLost) {
  auto wake = Wake::create();
  ASSERT_TRUE(wake);
  EXPECT_GT((*wake)->descriptor(), 2);
  (*wake)->signal();
  (*wake)->wait(UINT64_MAX);
  (*wake)->wait(1000);  // and is used up: this one ends by its limit
}

TEST(Wake, WakesAWaiterOnAnotherThread) {
  auto wake = Wake::create();
  ASSERT_TRUE(wake);
  for (int i = 0; i < 200; ++i) {
    std::thread signaller([&] { (*wake)->signal(); });
    (*wake)->wait(UINT64_MAX);
    signaller.join();
  }
}

}  // namespace
}  // namespace straightway::transport
