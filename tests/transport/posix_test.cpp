#include "transport/posix.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

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

// What a segment made of the system, in order.
std::vector<std::string> calls;

std::string range_text(std::uint64_t offset, std::uint64_t size) {
  return std::to_string(offset) + "+" + std::to_string(size);
}

const os::Syscalls& recording() {
  static const os::Syscalls table = {
      .pread =
          [](int, void*, std::size_t size, std::uint64_t offset) {
            calls.push_back("pread " + range_text(offset, size));
            return static_cast<std::int64_t>(size);
          },
      .pwrite = nullptr,
      .open = nullptr,
      .fdatasync = nullptr,
      .fsync = nullptr,
      .fallocate = nullptr,
      .truncate = nullptr,
      .statx = nullptr,
      .pread_dontcache =
          [](int fd, void*, std::size_t size, std::uint64_t offset) {
            calls.push_back("pread_dontcache " + range_text(offset, size));
            return fd == 9 ? std::int64_t{-EOPNOTSUPP} : static_cast<std::int64_t>(size) - 10;
          },
      .cached_pages = nullptr,
      .drop_pages =
          [](int, std::uint64_t offset, std::uint64_t size) {
            calls.push_back("drop " + range_text(offset, size));
            return 0;
          },
  };
  calls.clear();
  return table;
}

Segment cold_segment() {
  Segment segment;
  segment.file = 3;
  segment.file_offset = 8192;
  segment.size_bytes = 4096;
  return segment;
}

TEST(Posix, DropsOnlyWhatItReadAndOnlyIfToldTo) {
  Posix posix(recording());
  auto segment = cold_segment();
  segment.dontcache = segment.trim = true;
  EXPECT_EQ(posix.move(segment).result, 4086);
  EXPECT_EQ(calls, (std::vector<std::string>{"pread_dontcache 8192+4096", "drop 8192+4086"}));
  calls.clear();
  segment.file = 9;
  EXPECT_EQ(posix.move(segment).result, -EOPNOTSUPP);
  EXPECT_EQ(calls, (std::vector<std::string>{"pread_dontcache 8192+4096"}));
}

TEST(Posix, RefusesDeviceMemoryAndClosedFiles) {
  Posix posix(os::kernel());
  EXPECT_EQ(posix.attach(MemoryRange{SpaceKind::cuda, 0, 4096, 1}).error().kind,
            ErrorKind::unsupported);
  EXPECT_EQ(posix.attach(FileRef{-1, -1}).error().kind, ErrorKind::closed);
}

}  // namespace
}  // namespace straightway::transport
