#include "cufile/statistics.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <vector>

namespace straightway::cufile {
namespace {

std::array<char, 16> no_uuid(std::int32_t) { return {'u'}; }

TEST(Statistics, SizesFallIntoTheMeasuredBuckets) {
  EXPECT_EQ(size_bucket(0), 0U);
  EXPECT_EQ(size_bucket(4095), 0U);
  EXPECT_EQ(size_bucket(4096), 1U);
  EXPECT_EQ(size_bucket(8191), 1U);
  EXPECT_EQ(size_bucket(8192), 2U);
  EXPECT_EQ(size_bucket(64 << 10), 5U);
  EXPECT_EQ(size_bucket(1 << 20), 9U);
  EXPECT_EQ(size_bucket(16 << 20), 13U);
  EXPECT_EQ(size_bucket(64 << 20), 15U);
  EXPECT_EQ(size_bucket(~std::uint64_t{0}), 15U);
}

TEST(Statistics, ACallCountsAsTheVendors120DoesIt) {
  Statistics statistics(1200, 3);
  CountedCall call{.flow = Flow::read,
                   .requested_bytes = 72 << 20,
                   .duration_us = 100,
                   .device = 1,
                   .parts = {.n = 4, .posix = 4},
                   .unaligned_parts = 1};
  statistics.count(call);
  call.failed = true;
  statistics.count(call);
  statistics.count({.flow = Flow::read});  // size 0
  statistics.count({.flow = Flow::read, .requested_bytes = 10, .empty_read = true, .device = 1});
  const auto seen = statistics.snapshot(2, no_uuid);
  EXPECT_EQ(seen->level1.read.ok, 3U);
  EXPECT_EQ(seen->level1.read.err, 1U);
  EXPECT_EQ(seen->level1.read_bytes, (72U << 20) + 10);
  EXPECT_EQ(seen->level1.read_latency_sum_us, 100U);
  EXPECT_EQ(seen->read_sizes[15], 1U);
  EXPECT_EQ(seen->read_sizes[0], 1U);
  EXPECT_EQ(seen->gpus[1].read.n, 4U);
  EXPECT_EQ(seen->gpus[1].read.posix, 4U);
  EXPECT_EQ(seen->gpus[1].read.unaligned, 1U);
  EXPECT_EQ(seen->gpus[1].read_errors, 2U);
  EXPECT_EQ(seen->gpus[0].read.n, 0U);
  EXPECT_EQ(seen->gpu_count, 2U);
  EXPECT_EQ(seen->gpus[1].uuid[0], 'u');
  EXPECT_EQ(seen->level1.write.ok, 0U);
}

TEST(Statistics, BatchEntriesMoveHistogramAndBytesOnly) {
  Statistics statistics(1200, 3);
  statistics.count({.flow = Flow::batch_read,
                    .requested_bytes = 4096,
                    .device = 0,
                    .parts = {.n = 1, .posix = 1}});
  const auto seen = statistics.snapshot(1, no_uuid);
  EXPECT_EQ(seen->level1.batch_read_bytes, 4096U);
  EXPECT_EQ(seen->read_sizes[1], 1U);
  EXPECT_EQ(seen->level1.read.ok, 0U);
  EXPECT_EQ(seen->gpus[0].read.n, 0U);
}

TEST(Statistics, RegisteredBuffersAreCountedPerGpu) {
  Statistics statistics(1200, 1);
  statistics.count_buffer(0, 100, true);
  statistics.count_buffer(0, 50, true);
  statistics.count_buffer(0, 100, false);
  statistics.count_buffer(-1, 7, true);
  const auto seen = statistics.snapshot(1, no_uuid);
  EXPECT_EQ(seen->gpus[0].mapped_ok, 2U);
  EXPECT_EQ(seen->gpus[0].mapped_free, 1U);
  EXPECT_EQ(seen->gpus[0].registered_bytes, 50U);
}

TEST(Statistics, RegisteredBytesDoNotFallBelowNone) {
  Statistics statistics(1200, 1);
  statistics.count_buffer(0, 100, true);
  statistics.reset();
  statistics.count_buffer(0, 100, false);
  EXPECT_EQ(statistics.snapshot(1, no_uuid)->gpus[0].registered_bytes, 0U);
}

TEST(Statistics, StoppedCountersFreezeAndResetOnesBeginAnew) {
  Statistics statistics(1200, 0);
  EXPECT_FALSE(statistics.counting());
  EXPECT_EQ(statistics.start(), abi::internal_error);
  statistics.set_level(1);
  EXPECT_EQ(statistics.start(), abi::success);
  statistics.count({.flow = Flow::write, .requested_bytes = 1});
  statistics.stop();
  statistics.count({.flow = Flow::write, .requested_bytes = 1});
  EXPECT_EQ(statistics.snapshot(0, no_uuid)->level1.write.ok, 1U);
  statistics.reset();
  EXPECT_EQ(statistics.snapshot(0, no_uuid)->level1.write.ok, 0U);
  EXPECT_EQ(statistics.start(), abi::success);
  statistics.count({.flow = Flow::write, .requested_bytes = 1});
  EXPECT_EQ(statistics.snapshot(0, no_uuid)->level1.write.ok, 1U);
}

TEST(Statistics, RatesAreThoseOfTheLastWholeSecond) {
  Published counters{};
  counters.flows[0] = {.second = 10,
                       .bytes = 5,
                       .operations = 1,
                       .busy_us = 0,
                       .last_bytes = 70,
                       .last_operations = 7,
                       .last_busy_us = 0};
  counters.gpu_flows[0][0].second = 9;
  counters.gpu_flows[0][0].busy_us = 2'500'000;
  counters.level1.read = {.ok = 3, .err = 1};
  counters.level1.read_latency_sum_us = 400;
  Published now = counters;
  fill_rates(now, 10);
  EXPECT_EQ(now.level1.read_bytes_per_s, 70U);
  EXPECT_EQ(now.level1.read_ops_per_s, 7U);
  EXPECT_EQ(now.level1.read_latency_avg_us, 100U);
  EXPECT_EQ(now.gpus[0].read.utilization, 250U);
  now = counters;
  fill_rates(now, 11);
  EXPECT_EQ(now.level1.read_bytes_per_s, 5U);
  now = counters;
  fill_rates(now, 12);
  EXPECT_EQ(now.level1.read_bytes_per_s, 0U);
}

// Never a byte more than the structure of the version that is answered.
TEST(Statistics, EachLevelIsWrittenInTheLayoutOfItsVersion) {
  Published counters{};
  counters.level1.read.ok = 1;
  counters.level1.readv.ok = 2;
  counters.read_sizes[3] = 4;
  counters.write_sizes[31] = 5;
  counters.gpu_count = 2;
  counters.gpus[0].read.n = 6;
  counters.gpus[15].registered_bytes = 7;
  const auto word = [](const std::vector<char>& bytes, std::size_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, &bytes[at], 8);
    return value;
  };
  for (const int version : {1150, 1180, 1190, 1200}) {
    const abi::StatsLayout layout = abi::stats_layout(version);
    const std::size_t sizes[] = {layout.level1_bytes, layout.level2_bytes(), layout.level3_bytes()};
    for (int level = 1; level <= 3; ++level) {
      const std::size_t size = sizes[level - 1];
      std::vector<char> bytes(size + 64, '\x5a');
      write_level(bytes.data(), level, version, counters);
      EXPECT_EQ(std::vector<char>(bytes.begin() + static_cast<std::ptrdiff_t>(size), bytes.end()),
                std::vector<char>(64, '\x5a'));
      EXPECT_EQ(word(bytes, 0), 1U);
      if (version >= 1190) {
        EXPECT_EQ(word(bytes, 512), 2U);
      }
      if (level < 2) continue;
      EXPECT_EQ(word(bytes, layout.level1_bytes + 3 * 8), 4U);
      EXPECT_EQ(word(bytes, layout.level1_bytes + 63 * 8), 5U);
      if (level < 3) continue;
      EXPECT_EQ(word(bytes, layout.level2_bytes()) & 0xffff'ffffU, 2U);
      EXPECT_EQ(word(bytes, layout.gpus_at() + offsetof(abi::PerGpu, read.n)), 6U);
      EXPECT_EQ(word(bytes, size - 8), 7U);
    }
  }
}

}  // namespace
}  // namespace straightway::cufile
