#include "os/page_presence.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

#include "tests/temp_file.hpp"

namespace straightway::os {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t pages = 1500;  // more than one read of the page map

// With the kernel's scan and, as before Linux 6.7, without.
class Presence : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto opened = PagePresence::open();
    ASSERT_TRUE(opened) << opened.error().message();
    presence = std::move(*opened);
    if (!GetParam()) presence.forget_scan();
    file = Descriptor(
        ::open(folder.write("a", tests::pattern(pages * page)).c_str(), O_RDWR | O_CLOEXEC));
    mapped = static_cast<std::byte*>(
        ::mmap(nullptr, pages * page, PROT_READ, MAP_SHARED, file.get(), 0));
    ASSERT_NE(mapped, MAP_FAILED);
  }
  void TearDown() override { ::munmap(mapped, pages * page); }
  void touch() {
    for (std::size_t i = 0; i < pages; ++i)
      static_cast<void>(*(volatile std::byte*)(mapped + i * page));
  }

  tests::TempFolder folder;
  PagePresence presence;
  Descriptor file;
  std::byte* mapped = nullptr;
};

TEST_P(Presence, TellsMappedFromUnmapped) {
  EXPECT_FALSE(presence.all_present(mapped, pages * page));
  EXPECT_FALSE(presence.all_present(mapped, 1));
  EXPECT_TRUE(presence.all_present(mapped, 0));
  touch();
  EXPECT_TRUE(presence.all_present(mapped, pages * page));
  EXPECT_TRUE(presence.all_present(mapped + 5, page));
}

TEST_P(Presence, OnePageThatLeavesTheCacheIsMissed) {
  touch();
  ASSERT_EQ(::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        static_cast<off_t>((pages - 1) * page), page),
            0);
  EXPECT_FALSE(presence.all_present(mapped, pages * page));
  EXPECT_FALSE(presence.all_present(mapped + (pages - 1) * page, 1));
  EXPECT_FALSE(presence.all_present(mapped + (pages - 1) * page - 1, 2));
}

TEST_P(Presence, AWriteThroughTheCacheKeepsThePages) {
  touch();
  ASSERT_EQ(::pwrite(file.get(), "new", 3, 5 * page), 3);
  EXPECT_TRUE(presence.all_present(mapped, pages * page));
}

INSTANTIATE_TEST_SUITE_P(Kernel, Presence, testing::Bool());

TEST(PagePresence, WithoutAPageMapNothingIsPresent) {
  const PagePresence none;
  const int here = 0;
  EXPECT_FALSE(none.all_present(&here, sizeof here));
}

}  // namespace
}  // namespace straightway::os
