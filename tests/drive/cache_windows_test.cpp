#include "drive/cache_windows.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace straightway::drive {
namespace {

using plan::Residency;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

// A page cache of whole MiB; counts the looks.
class CacheWindowsTest : public testing::Test {
 protected:
  void begin(std::vector<bool> hot, FileRange range, ColdWay cold = ColdWay::kept) {
    hot_ = std::move(hot);
    straightway::Run run;
    run.file = range;
    run.segment_bytes = mib;
    run.cold = cold;
    windows.begin(run, 7, look_up_);
  }
  plan::Look look(const FileRange& range) {
    looks.push_back(range);
    if (refuses) return {};
    std::uint64_t resident = 0;
    for (auto at = range.offset; at < range.offset + range.size_bytes;) {
      const auto next = std::min((at / mib + 1) * mib, range.offset + range.size_bytes);
      if (hot_[at / mib]) resident += next - at;
      at = next;
    }
    return {true, resident};
  }

  CacheWindows windows;
  std::vector<FileRange> looks;
  bool refuses = false;

 private:
  std::vector<bool> hot_;
  LookUp look_up_ = [this](int fd, const FileRange& range) {
    EXPECT_EQ(fd, 7);
    return look(range);
  };
};

std::vector<bool> alternating(std::size_t count, std::size_t stretch) {
  std::vector<bool> hot(count);
  for (std::size_t i = 0; i < count; ++i) hot[i] = (i / stretch) % 2 == 0;
  return hot;
}

TEST_F(CacheWindowsTest, AWindowInOneStateCostsOneLook) {
  begin(std::vector<bool>(128, true), {0, 128 * mib}, ColdWay::dropped);
  for (std::uint64_t i = 0; i < 64; ++i) EXPECT_EQ(windows.at(i * mib), Residency::hot);
  EXPECT_EQ(looks.size(), 1U);
  EXPECT_EQ(windows.at(64 * mib), Residency::hot);
  ASSERT_EQ(looks.size(), 2U);
  EXPECT_EQ(looks[1].offset, 64 * mib);
  EXPECT_EQ(looks[1].size_bytes, 64 * mib);
  EXPECT_EQ(windows.found().hot_bytes, 128 * mib);
}

TEST_F(CacheWindowsTest, AMixedWindowIsLookedUpPerGranule) {
  begin(alternating(64, 1), {0, 64 * mib}, ColdWay::dropped);
  EXPECT_EQ(windows.at(0), Residency::hot);
  EXPECT_EQ(looks.size(), 65U);
  EXPECT_EQ(windows.at(mib), Residency::cold);
  EXPECT_EQ(looks.size(), 65U);
  EXPECT_EQ(windows.found(), (CacheFound{32 * mib, 32 * mib, 0}));
}

TEST_F(CacheWindowsTest, EdgesCountAsFarAsTheRunGoes) {
  begin(alternating(4, 1), {mib / 2, 2 * mib}, ColdWay::dropped);
  EXPECT_EQ(windows.at(mib / 2), Residency::hot);
  EXPECT_EQ(windows.at(mib), Residency::cold);
  EXPECT_EQ(windows.at(2 * mib), Residency::hot);
  EXPECT_EQ(windows.found(), (CacheFound{mib, mib, 0}));
}

TEST_F(CacheWindowsTest, AFileThatMayNotBeLookedAtIsAskedOnce) {
  refuses = true;
  begin(std::vector<bool>(256), {0, 256 * mib});
  for (std::uint64_t i = 0; i < 256; ++i) {
    EXPECT_EQ(windows.at(i * mib), Residency::unknown);
  }
  EXPECT_EQ(looks.size(), 1U);
  EXPECT_EQ(windows.found(), (CacheFound{0, 0, 256 * mib}));
}

TEST_F(CacheWindowsTest, LooksNoFurtherThanTheWindowOfThePosition) {
  begin(std::vector<bool>(2048, true), {0, 2048 * mib});
  windows.at(0);
  EXPECT_EQ(looks.size(), 1U);
}

TEST_F(CacheWindowsTest, StartsAnewWithEachRun) {
  begin(std::vector<bool>(4), {0, 4 * mib});
  windows.at(0);
  begin(std::vector<bool>(4, true), {0, 4 * mib});
  EXPECT_EQ(windows.at(mib), Residency::hot);
}

}  // namespace
}  // namespace straightway::drive
