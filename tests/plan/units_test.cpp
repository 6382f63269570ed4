#include "plan/units.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace straightway::plan {
namespace {

TEST(Units, BytesArePowersOf1024) {
  EXPECT_EQ(format_bytes(0), "0 bytes");
  EXPECT_EQ(format_bytes(1), "1 byte");
  EXPECT_EQ(format_bytes(1023), "1023 bytes");
  EXPECT_EQ(format_bytes(4096), "4 KiB");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(std::uint64_t{256} << 20), "256 MiB");
  EXPECT_EQ(format_bytes(std::uint64_t{1} << 30), "1.00 GiB");
  EXPECT_EQ(format_bytes((std::uint64_t{1} << 30) - 1), "1023.99 MiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<std::uint64_t>::max()), "15.99 EiB");
}

TEST(Units, DurationsHaveThreeDigits) {
  EXPECT_EQ(format_duration_ns(0), "0 ns");
  EXPECT_EQ(format_duration_ns(850), "850 ns");
  EXPECT_EQ(format_duration_ns(12'345), "12.3 us");
  EXPECT_EQ(format_duration_ns(20'100'000), "20.1 ms");
  EXPECT_EQ(format_duration_ns(999'999'999), "1.00 s");
  EXPECT_EQ(format_duration_ns(150'000'000'000), "150 s");
}

TEST(Units, RatesArePowersOf1000) {
  EXPECT_EQ(format_rate(std::uint64_t{1} << 30, 20'108'000), "53.4 GB/s");
  EXPECT_EQ(format_rate(850, 1'000'000'000), "850 B/s");
  EXPECT_EQ(format_rate(0, 1), "0 B/s");
  EXPECT_EQ(format_rate(1, 0), "-");
}

}  // namespace
}  // namespace straightway::plan
