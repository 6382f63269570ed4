#include "drive/crew.hpp"

#include <gtest/gtest.h>

#include <array>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace straightway::drive {
namespace {

TEST(CrewTest, DoesEachPieceOnceHoweverManyHelpThere) {
  for (const std::uint32_t helpers : {0U, 1U, 3U, 8U}) {
    Crew crew(helpers);
    for (int job = 0; job < 300; ++job) {
      std::array<std::atomic<int>, 16> done{};
      const auto count = static_cast<std::uint32_t>(1 + job % 16);
      ASSERT_TRUE(crew.run(count, [&](std::uint32_t i) { ++done[i]; }));
      for (std::uint32_t i = 0; i < done.size(); ++i) ASSERT_EQ(done[i], i < count ? 1 : 0);
    }
  }
}

TEST(CrewTest, NothingOfAJobRunsAfterItHasReturned) {
  Crew crew(3);
  for (int job = 0; job < 300; ++job) {
    auto values = std::make_unique<std::array<int, 4>>();  // its end is the witness under ASan
    ASSERT_TRUE(crew.run(4, [&](std::uint32_t i) { (*values)[i] = job; }));
    for (const int value : *values) ASSERT_EQ(value, job);
  }
}

TEST(CrewTest, OneJobAtATime) {
  Crew crew(2);
  bool second = true;
  ASSERT_TRUE(crew.run(1, [&](std::uint32_t) {
    second =
        std::async(std::launch::async, [&] { return crew.run(1, [](std::uint32_t) {}); }).get();
  }));
  EXPECT_FALSE(second);
}

TEST(CrewTest, TheCallerDoesSomethingElseFirst) {
  for (const std::uint32_t helpers : {0U, 3U}) {
    Crew crew(helpers);
    std::thread::id who;
    std::atomic<int> pieces{0};
    ASSERT_TRUE(
        crew.run(5, [&](std::uint32_t) { ++pieces; }, [&] { who = std::this_thread::get_id(); }));
    EXPECT_EQ(who, std::this_thread::get_id());
    EXPECT_EQ(pieces, 5);
  }
}

TEST(CrewTest, ManyThreadsMayAsk) {
  Crew crew(3);
  std::atomic<int> pieces{0};
  std::atomic<int> jobs{0};
  std::vector<std::thread> callers;
  for (int k = 0; k < 4; ++k) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        if (crew.run(3, [&](std::uint32_t) { ++pieces; })) ++jobs;
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_GT(jobs, 0);
  EXPECT_EQ(pieces, 3 * jobs);
}

}  // namespace
}  // namespace straightway::drive
