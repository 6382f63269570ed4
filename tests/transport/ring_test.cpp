#include "transport/ring.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace straightway::transport {
namespace {

constexpr std::uint64_t page = 4096;

TEST(RingTest, TakesInOrderUntilItIsFull) {
  Ring ring(4 * page, 4 * page);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(ring.take(page), i * page);
  EXPECT_EQ(ring.take(1), std::nullopt);
  ring.give_back();
  EXPECT_EQ(ring.take(page), 0U);
  EXPECT_EQ(ring.take(1), std::nullopt);
}

TEST(RingTest, ARegionDoesNotWrap) {
  Ring ring(4 * page, 4 * page);
  ring.take(3 * page);
  ring.take(page);
  ring.give_back();
  EXPECT_EQ(ring.take(4 * page), std::nullopt);
  EXPECT_EQ(ring.take(3 * page), 0U);
}

TEST(RingTest, TurnsWithinItsWindowUntilItIsWidened) {
  Ring ring(8 * page, 2 * page);
  EXPECT_EQ(ring.take(page), 0U);
  EXPECT_EQ(ring.take(page), page);
  EXPECT_EQ(ring.take(page), std::nullopt);
  ring.give_back();
  EXPECT_EQ(ring.take(page), 0U);  // around, though the ring is larger
  ring.widen();
  EXPECT_EQ(ring.window_bytes(), 4 * page);
  EXPECT_EQ(ring.take(page), std::nullopt);  // from the next turn on
  ring.give_back();
  EXPECT_EQ(ring.take(page), page);
  EXPECT_EQ(ring.take(page), 2 * page);
}

TEST(RingTest, WhatIsLargerThanTheWindowFitsWhenItIsEmpty) {
  Ring ring(8 * page, 2 * page);
  EXPECT_EQ(ring.take(7 * page), 0U);
  ring.give_back();
  EXPECT_EQ(ring.take(page), 0U);
  EXPECT_EQ(ring.window_bytes(), 2 * page);  // small again
}

TEST(RingTest, NoRegionCrossesTheEdgeWhereItGrew) {
  Ring ring(2 * page, 6 * page);
  EXPECT_EQ(ring.take(page), 0U);
  ring.grow(4 * page);
  EXPECT_EQ(ring.size_bytes(), 6 * page);
  EXPECT_EQ(ring.edge(), 2 * page);
  ring.widen();
  ring.widen();
  EXPECT_EQ(ring.take(2 * page), 2 * page);  // not at one page
  ring.give_back();
  ring.give_back();
  EXPECT_EQ(ring.take(3 * page), 2 * page);
}

TEST(RingTest, RegionsNeverOverlapWhateverComes) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const std::uint64_t size = (4 + random() % 60) * page;
    Ring ring(size, 1 + random() % size);
    std::deque<std::pair<std::uint64_t, std::uint64_t>> taken;
    std::uint64_t refused = 0;
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t wanted = 1 + random() % (random() % 8 == 0 ? size : size / 4);
      if (random() % 5 == 0) ring.widen();
      if (i == 700 && seed % 2 == 0) ring.grow(size / 2 / page * page);
      if (const auto at = ring.take(wanted)) {
        ASSERT_EQ(*at % page, 0U);
        ASSERT_LE(*at + wanted, ring.size_bytes());
        ASSERT_TRUE(ring.edge() <= *at || *at + wanted <= ring.edge()) << seed;
        for (const auto& [other, bytes] : taken) {
          ASSERT_TRUE(*at + wanted <= other || other + bytes <= *at) << seed;
        }
        taken.emplace_back(*at, wanted);
      } else {
        ASSERT_FALSE(taken.empty()) << "an empty ring has room";
        ++refused;
      }
      if (!taken.empty() && random() % 2 == 0) {
        taken.pop_front();
        ring.give_back();
      }
    }
    ASSERT_GT(refused, 0U);
  }
}

TEST(Ring, AnEmptyOneBeginsAsNarrowAsAsked) {
  Ring ring(64 * page, 32 * page);
  EXPECT_EQ(ring.take(page, 4 * page), 0U);
  EXPECT_EQ(ring.window_bytes(), 4 * page);
  ring.give_back();
  EXPECT_EQ(ring.take(8 * page, 4 * page), 0U);  // wide enough for what is taken
  EXPECT_EQ(ring.window_bytes(), 8 * page);
  ring.give_back();
  EXPECT_EQ(ring.take(page), 0U);
  EXPECT_EQ(ring.window_bytes(), 32 * page);
}

}  // namespace
}  // namespace straightway::transport
