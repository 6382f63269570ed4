#include "os/filled.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "os/descriptor.hpp"
#include "tests/temp_file.hpp"

namespace straightway::os {
namespace {

constexpr std::uint64_t kib64 = 65536;

class Filled : public testing::Test {
 protected:
  Filled() : file(::open(folder.path("a").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {}
  void write(std::uint64_t offset, std::uint64_t size) {
    const std::string bytes(size, 'x');
    ASSERT_EQ(::pwrite(file.get(), bytes.data(), size, static_cast<off_t>(offset)),
              static_cast<ssize_t>(size));
  }
  std::int64_t end(std::uint64_t offset, std::uint64_t enough = INT64_MAX) {
    return filled_end(file.get(), offset, enough);
  }

  tests::TempFolder folder;
  Descriptor file;
};

TEST_F(Filled, EndsWhereAHoleBegins) {
  write(0, kib64);
  write(3 * kib64, kib64);
  EXPECT_EQ(end(0), kib64) << "what was not written to the disk yet counts, too";
  EXPECT_EQ(end(4096), kib64);
  EXPECT_EQ(end(kib64), kib64);
  EXPECT_EQ(end(2 * kib64), 2 * kib64);
  EXPECT_EQ(end(3 * kib64), 4 * kib64);
}

TEST_F(Filled, EndsWhereTheFileDoes) {
  EXPECT_EQ(end(0), 0);
  write(0, kib64);
  EXPECT_EQ(end(0), kib64);
  EXPECT_LE(end(2 * kib64), static_cast<std::int64_t>(2 * kib64));
}

// SEEK_HOLE calls them data from the moment that somebody reads them through the page cache.
TEST_F(Filled, BlocksNeverWrittenDoNotCountEvenWhereTheirZerosAreCached) {
  write(0, kib64);
  if (::fallocate(file.get(), 0, static_cast<off_t>(kib64), static_cast<off_t>(kib64)) != 0) {
    GTEST_SKIP() << "this file system does not preallocate";
  }
  EXPECT_EQ(end(0), kib64);
  std::string bytes(2 * kib64, 'y');
  ASSERT_EQ(::pread(file.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  EXPECT_EQ(end(0), kib64);
  EXPECT_EQ(end(kib64), kib64);
  write(kib64, kib64);
  EXPECT_EQ(end(0), 2 * kib64) << "now they are written";
}

TEST_F(Filled, LooksOnPastManyExtents) {
  constexpr std::uint64_t page = 4096;
  constexpr std::uint64_t pages = 400;
  for (std::uint64_t i = 0; i < pages; ++i) {  // every second first, so that they lie apart
    write(2 * i * page, page);
    if (i % 50 == 0) ASSERT_EQ(::fsync(file.get()), 0);
  }
  ASSERT_EQ(::fsync(file.get()), 0);
  for (std::uint64_t i = 0; i < pages; ++i) {
    write((2 * i + 1) * page, page);
    if (i % 50 == 0) ASSERT_EQ(::fsync(file.get()), 0);
  }
  EXPECT_EQ(end(0), 2 * pages * page);
  EXPECT_GE(end(0, page), page);
}

TEST_F(Filled, AFileThatCannotBeAskedIsAnError) { EXPECT_EQ(filled_end(-1, 0, 0), -EBADF); }

}  // namespace
}  // namespace straightway::os
