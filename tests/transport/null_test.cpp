#include "transport/null.hpp"

#include <gtest/gtest.h>

#include <array>

namespace straightway::transport {
namespace {

TEST(Null, CompletesAllOfEachSegmentWithoutTouchingMemory) {
  Null null(2);
  std::array<Segment, 3> segments{};
  for (std::size_t i = 0; i < segments.size(); ++i) {
    segments[i].cookie = 10 + i;
    segments[i].size_bytes = 100 + i;
    segments[i].address = 1;  // would fault
  }
  EXPECT_EQ(null.submit(segments), 2U);
  EXPECT_EQ(null.submit(segments), 0U);
  std::array<Completion, 3> completions{};
  ASSERT_EQ(null.reap(std::span(completions).first(1)), 1U);
  EXPECT_EQ(completions[0].cookie, 10U);
  EXPECT_EQ(completions[0].result, 100);
  EXPECT_EQ(null.submit(std::span(segments).last(1)), 1U);
  ASSERT_EQ(null.reap(completions), 2U);
  EXPECT_EQ(completions[0].cookie, 11U);
  EXPECT_EQ(completions[1].cookie, 12U);
  EXPECT_EQ(completions[1].result, 102);
  EXPECT_EQ(null.reap(completions), 0U);
}

}  // namespace
}  // namespace straightway::transport
