#include "os/file_stamp.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "os/descriptor.hpp"
#include "tests/temp_file.hpp"

namespace straightway::os {
namespace {

TEST(FileStamp, AChangeFromASettledStampOnAlwaysShows) {
  const tests::TempFolder folder;
  const Descriptor file(::open(folder.path("a").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  for (int i = 0; i < 20; ++i) {
    const auto before = read_settled_stamp(file.get());
    ASSERT_TRUE(before) << before.error().message();
    EXPECT_EQ(*read_stamp(file.get()), *before);
    ASSERT_EQ(::pwrite(file.get(), "x", 1, 0), 1);
    EXPECT_NE(*read_stamp(file.get()), *before);
  }
}

TEST(FileStamp, IsSettledOnceTheClockHasMovedOn) {
  FileStamp stamp;
  stamp.changed_s = 10;
  stamp.changed_ns = 500;
  EXPECT_FALSE(is_settled(stamp, {10, 500}));
  EXPECT_FALSE(is_settled(stamp, {10, 499}));
  EXPECT_TRUE(is_settled(stamp, {10, 501}));
  EXPECT_TRUE(is_settled(stamp, {11, 0}));
  EXPECT_FALSE(is_settled(stamp, {9, 900}));  // in the future
  stamp.changed_ns = 0;                       // a file system that counts seconds
  EXPECT_FALSE(is_settled(stamp, {10, 999}));
  EXPECT_TRUE(is_settled(stamp, {11, 0}));
}

TEST(FileStamp, OfAClosedDescriptorIsAnError) {
  EXPECT_EQ(read_stamp(-1).error().code, EBADF);
  EXPECT_FALSE(read_settled_stamp(-1));
}

TEST(FileStamp, WritersAreFound) {
  const tests::TempFolder folder;
  const auto path = folder.write("a", tests::pattern(100));
  const Descriptor reader(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(has_no_writers(reader.get()));
  EXPECT_TRUE(has_no_writers(reader.get()));
  {
    const Descriptor writer(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    EXPECT_FALSE(has_no_writers(reader.get()));
  }
  EXPECT_TRUE(has_no_writers(reader.get()));
  EXPECT_FALSE(has_no_writers(-1));
}

}  // namespace
}  // namespace straightway::os
