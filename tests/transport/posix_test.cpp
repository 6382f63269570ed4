#include "transport/posix.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "os/disk_account.hpp"
#include "tests/temp_file.hpp"
#include "transport/move_now.hpp"

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

// Two transfers' segments that come at once: each is told what was read from the disk for it, on
// one of its segments.
TEST(Posix, TellsEachTransferWhatTheDiskReadForIt) {
  constexpr std::size_t size = 1 << 20, piece = size / 4;
  const tests::TempFolder folder;
  const auto path = folder.write("a", tests::pattern(size));
  const int cached = ::open(path.c_str(), O_RDONLY);
  const int direct = ::open(path.c_str(), O_RDONLY | O_DIRECT);
  std::vector<char> memory(size + 4096);
  const auto begin = (reinterpret_cast<std::uint64_t>(memory.data()) + 4095) & ~4095ULL;
  const os::DiskAccount account;
  ::fsync(cached);
  const auto before = account.read_bytes();
  const bool reads = direct >= 0 && ::pread(direct, reinterpret_cast<void*>(begin), piece, 0) > 0;
  if (!reads || account.read_bytes() != before + static_cast<std::int64_t>(piece)) {
    GTEST_SKIP() << "O_DIRECT reads no disk here, or the kernel keeps no accounts";
  }
  std::vector<Segment> segments(8);
  for (std::size_t i = 0; i < 8; ++i) {
    const bool from_disk = i >= 2 && i < 6;
    segments[i].cookie = (from_disk ? std::uint64_t{1} << 32 : std::uint64_t{i / 6 * 2} << 32) + i;
    segments[i].file = static_cast<std::uint64_t>(from_disk ? direct : cached);
    segments[i].address = begin + i % 4 * piece;
    segments[i].file_offset = i % 4 * piece;
    segments[i].size_bytes = piece;
  }
  Posix posix(os::kernel(), true);
  ASSERT_EQ(posix.submit(segments), 8U);
  Completion completions[8];
  ASSERT_EQ(posix.reap(completions), 8U);
  std::int64_t sums[3] = {};
  for (const auto& completion : completions) {
    ASSERT_GE(completion.disk_bytes, 0);
    sums[completion.cookie >> 32] += completion.disk_bytes;
  }
  EXPECT_EQ(sums[0], 0);
  EXPECT_EQ(sums[1], static_cast<std::int64_t>(size));
  EXPECT_EQ(sums[2], 0);
  ::close(cached);
  ::close(direct);
}

// Whoever made it: a copier's transport may be made by the thread that starts the copier.
TEST(Posix, MeasuresTheThreadThatSubmits) {
  constexpr std::size_t size = 64 << 10;
  const tests::TempFolder folder;
  const auto path = folder.write("a", tests::pattern(size));
  const int direct = ::open(path.c_str(), O_RDONLY | O_DIRECT);
  std::vector<char> memory(size + 4096);
  Segment segment;
  segment.file = static_cast<std::uint64_t>(direct);
  segment.address = (reinterpret_cast<std::uint64_t>(memory.data()) + 4095) & ~4095ULL;
  segment.size_bytes = size;
  Posix posix(os::kernel(), true);
  Completion completion;
  std::int64_t plain = 0;
  std::thread([&] {
    const os::DiskAccount account;
    const auto before = account.read_bytes();
    if (::pread(direct, reinterpret_cast<void*>(segment.address), size, 0) > 0) {
      plain = account.read_bytes() - before;
    }
    posix.submit({&segment, 1});
    posix.reap({&completion, 1});
  }).join();
  ::close(direct);
  if (plain != size) GTEST_SKIP() << "O_DIRECT reads no disk here, or the kernel keeps no accounts";
  EXPECT_EQ(completion.disk_bytes, static_cast<std::int64_t>(size));
}

TEST(Posix, KeepsAtMostItsDepth) {
  Posix posix(os::kernel(), true);
  std::vector<Segment> segments(posix.capabilities().depth + 5);
  for (auto& segment : segments) segment.file = static_cast<std::uint64_t>(-1);
  EXPECT_EQ(posix.submit(segments), posix.capabilities().depth);
  EXPECT_EQ(posix.submit(segments), 0U);
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

Completion move_one(Posix& posix, const Segment& segment) {
  Completion completion;
  move_now(posix, {&segment, 1}, {&completion, 1});
  return completion;
}

TEST(Posix, DropsOnlyWhatItReadAndOnlyIfToldTo) {
  Posix posix(recording());
  auto segment = cold_segment();
  segment.dontcache = segment.trim = true;
  EXPECT_EQ(move_one(posix, segment).result, 4086);
  EXPECT_EQ(calls, (std::vector<std::string>{"pread_dontcache 8192+4096", "drop 8192+4086"}));
  calls.clear();
  segment.file = 9;
  EXPECT_EQ(move_one(posix, segment).result, -EOPNOTSUPP);
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
