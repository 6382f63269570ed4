#include "transport/posix.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "tests/temp_file.hpp"

namespace straightway::transport {
namespace {

TEST(Posix, CompletesOnSubmitWithTheKernelsAnswer) {
  const tests::TempFolder folder;
  const auto bytes = tests::pattern(10000);
  const int fd = ::open(folder.write("a", bytes).c_str(), O_RDONLY);
  Posix posix(os::kernel(), true);
  std::vector<char> memory(10000, 'x');
  Segment segment;
  segment.file = static_cast<std::uint64_t>(fd);
  segment.address = reinterpret_cast<std::uint64_t>(memory.data());
  segment.file_offset = 9000;
  segment.size_bytes = 5000;
  segment.cookie = 42;
  Segment bad = segment;
  bad.file = static_cast<std::uint64_t>(-1);
  const Segment both[] = {segment, bad};
  EXPECT_EQ(posix.submit(both), 2U);
  Completion completions[4];
  ASSERT_EQ(posix.reap(completions), 2U);
  EXPECT_EQ(completions[0].cookie, 42U);
  EXPECT_EQ(completions[0].result, 1000);
  EXPECT_EQ(completions[0].disk_bytes, 0);  // the file is in the page cache
  EXPECT_EQ(completions[1].result, -EBADF);
  EXPECT_TRUE(std::equal(bytes.begin() + 9000, bytes.end(), memory.begin()));
  EXPECT_EQ(memory[1000], 'x');
  EXPECT_EQ(posix.reap(completions), 0U);
  ::close(fd);
}

TEST(Posix, RefusesDeviceMemoryAndClosedFiles) {
  Posix posix(os::kernel());
  EXPECT_EQ(posix.attach(MemoryRange{SpaceKind::cuda, 0, 4096, 1}).error().kind,
            ErrorKind::unsupported);
  EXPECT_EQ(posix.attach(FileRef{-1, -1}).error().kind, ErrorKind::closed);
}

}  // namespace
}  // namespace straightway::transport
