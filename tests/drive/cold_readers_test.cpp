#include "drive/cold_readers.hpp"

#include <gtest/gtest.h>

namespace straightway::drive {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

// Segments of a MiB, as many at once as there is room for; each takes so long.
std::uint64_t limit_after(std::uint64_t segment_ns, int rounds) {
  ColdReaders readers;
  std::uint64_t now_ns = 1;
  for (int i = 0; i < rounds; ++i) {
    const auto count = readers.limit();
    readers.begin(count, now_ns);
    now_ns += segment_ns;
    for (std::uint64_t k = 0; k < count; ++k) readers.end(mib, now_ns);
  }
  return readers.limit();
}

TEST(ColdReaders, ASlowDiskGetsAFew) { EXPECT_EQ(limit_after(3'000'000, 1000), 5U); }

TEST(ColdReaders, WhereCopyingIsTheLimitThereAreMoreUpToABound) {
  EXPECT_GT(limit_after(500'000, 10), 5U);
  EXPECT_EQ(limit_after(500'000, 1000), 32U);
}

TEST(ColdReaders, RoomCountsWhatIsUnderWayAndWhatIsToCome) {
  ColdReaders readers;
  EXPECT_TRUE(readers.has_room(4));
  EXPECT_FALSE(readers.has_room(5));
  readers.begin(5, 1);
  EXPECT_FALSE(readers.has_room(0));
  readers.end(0, 2);
  EXPECT_TRUE(readers.has_room(0));
}

}  // namespace
}  // namespace straightway::drive
