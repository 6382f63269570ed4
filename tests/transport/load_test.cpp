#include "transport/load.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace straightway::transport {
namespace {

Segment segment_at(std::uint64_t offset, std::uint64_t size, std::uint64_t address) {
  Segment segment;
  segment.cookie = offset;
  segment.file_offset = segment.envelope_offset = offset;
  segment.size_bytes = segment.envelope_bytes = size;
  segment.address = address;
  return segment;
}

Completion moved(std::int64_t result) { return {.cookie = 0, .result = result, .error = nullptr}; }

TEST(LoadTest, WhatTouchesOnBothSidesIsOneCopy) {
  Load load;
  load.begin(Direction::read, 8192);
  load.add(segment_at(0, 100, 5000));
  load.add(segment_at(700, 50, 5100));
  load.add(segment_at(900, 50, 9000));
  for (std::size_t i = 0; i < 3; ++i) {
    load.host_done(i, moved(static_cast<std::int64_t>(load.segments[i].size_bytes)));
  }
  ASSERT_EQ(load.extents.size(), 2U);
  EXPECT_EQ(load.extents[0].at, 8192U);
  EXPECT_EQ(load.extents[0].address, 5000U);
  EXPECT_EQ(load.extents[0].size_bytes, 150U);
  EXPECT_EQ(load.extents[1].at, 8192U + 150);
  EXPECT_EQ(load.extents[1].address, 9000U);
}

TEST(LoadTest, AShortSegmentEndsItsCopy) {
  Load load;
  load.begin(Direction::read, 0);
  load.add(segment_at(0, 100, 5000));
  load.add(segment_at(100, 100, 5100));
  load.host_done(0, moved(40));
  load.host_done(1, moved(100));
  ASSERT_EQ(load.extents.size(), 2U);
  EXPECT_EQ(load.extents[0].size_bytes, 40U);
  EXPECT_EQ(load.extents[1].at, 100U);
  EXPECT_EQ(load.completions[0].result, 40);
  EXPECT_EQ(load.completions[1].result, 100);
}

TEST(LoadTest, OfAnEnvelopeOnlyThePayloadIsCopied) {
  Load load;
  load.begin(Direction::read, 4096);
  auto segment = segment_at(5000, 3000, 70'000);
  segment.envelope_offset = 4096;
  segment.envelope_bytes = 4096;
  load.add(segment);
  load.host_done(0, moved(2000));  // 904 bytes before the payload, then 1096 of it
  EXPECT_EQ(load.completions[0].result, 1096);
  ASSERT_EQ(load.extents.size(), 1U);
  EXPECT_EQ(load.extents[0].at, 4096U + 904);
  EXPECT_EQ(load.extents[0].size_bytes, 1096U);
  EXPECT_EQ(payload_moved(segment, 900), 0);
}

TEST(LoadTest, AFailedSegmentKeepsItsOwnReason) {
  Load load;
  load.begin(Direction::read, 0);
  load.add(segment_at(0, 100, 5000));
  load.add(segment_at(100, 100, 5100));
  load.host_done(0, moved(-ENXIO));
  load.host_done(1, moved(100));
  load.fail(std::make_shared<const Error>());
  EXPECT_EQ(load.completions[0].result, -ENXIO);
  EXPECT_FALSE(load.completions[0].error);
  EXPECT_EQ(load.completions[1].result, -EIO);
  EXPECT_TRUE(load.completions[1].error);
}

TEST(LoadTest, GoesOnOnlyWhereBothSidesDo) {
  Load first;
  first.begin(Direction::read, 0);
  first.add(segment_at(0, 4096, 5000));
  first.host_done(0, moved(4096));
  Load second;
  second.begin(Direction::read, 4096);
  second.add(segment_at(4096, 4096, 5000 + 4096));
  second.host_done(0, moved(4096));
  EXPECT_TRUE(second.continues(first));
  second.begin(Direction::read, 0);  // the ring began again
  second.add(segment_at(4096, 4096, 5000 + 4096));
  second.host_done(0, moved(4096));
  EXPECT_FALSE(second.continues(first));
}

}  // namespace
}  // namespace straightway::transport
