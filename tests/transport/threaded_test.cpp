#include "transport/threaded.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <semaphore>

#include "tests/temp_file.hpp"
#include "transport/posix.hpp"

namespace straightway::transport {
namespace {

TEST(Threaded, MovesTheBytesWithEveryWorker) {
  const tests::TempFolder folder;
  const auto bytes = tests::pattern(1 << 20);
  const int fd = ::open(folder.write("a", bytes).c_str(), O_RDONLY);
  auto wake = Wake::create();
  std::vector<char> memory(bytes.size());
  {
    Threaded threaded([] { return std::make_unique<Posix>(os::kernel()); }, 3, **wake);
    EXPECT_EQ(threaded.capabilities().threads, 1U) << "none works yet";
    std::size_t submitted = 0;
    std::size_t reaped = 0;
    constexpr std::size_t piece = 4096;
    const auto count = bytes.size() / piece;
    std::vector<int> seen(count, 0);
    while (reaped < count) {
      if (submitted < count) {
        Segment segment;
        segment.cookie = submitted;
        segment.file = static_cast<std::uint64_t>(fd);
        segment.file_offset = submitted * piece;
        segment.size_bytes = piece;
        segment.address = reinterpret_cast<std::uint64_t>(memory.data()) + submitted * piece;
        submitted += threaded.submit({&segment, 1});
      }
      Completion completions[8];
      const auto got = threaded.reap(completions);
      for (std::size_t i = 0; i < got; ++i) {
        EXPECT_EQ(completions[i].result, static_cast<std::int64_t>(piece));
        ++seen[completions[i].cookie];
      }
      reaped += got;
      if (got == 0 && submitted == count) (*wake)->wait(UINT64_MAX);
    }
    EXPECT_EQ(seen, std::vector<int>(count, 1));
  }
  EXPECT_EQ(memory, bytes);
  ::close(fd);
}

std::atomic<int> moved;
std::int64_t slow_pread(int, void*, std::size_t size, std::uint64_t) {
  ::usleep(200);
  ++moved;
  return static_cast<std::int64_t>(size);
}

TEST(Threaded, TheDestructorWaitsForWhatWasAccepted) {
  auto wake = Wake::create();
  os::Syscalls slow = os::kernel();
  slow.pread = slow_pread;
  moved = 0;
  std::size_t accepted = 0;
  {
    Threaded threaded([&slow] { return std::make_unique<Posix>(slow); }, 2, **wake);
    std::vector<Segment> segments(1000);
    for (auto& segment : segments) segment.size_bytes = 1;
    accepted = threaded.submit(segments);
    EXPECT_EQ(accepted, threaded.capabilities().depth);
    EXPECT_EQ(threaded.submit(segments), 0U);  // full, not an error
  }
  EXPECT_EQ(moved.load(), static_cast<int>(accepted));
}

std::atomic<int> inside, most_inside;
std::atomic<int> wanted_inside;
// Waits until as many are inside as are wanted, for ten seconds at most.
std::int64_t meeting_pread(int, void*, std::size_t size, std::uint64_t) {
  const int now = ++inside;
  for (int most = most_inside; now > most && !most_inside.compare_exchange_weak(most, now);) {
  }
  for (int i = 0; most_inside < wanted_inside && i < 10'000; ++i) ::usleep(1000);
  ::usleep(500);  // so that others would come in meanwhile
  --inside;
  return static_cast<std::int64_t>(size);
}

void move_all(Threaded& threaded, Wake& wake, std::size_t count) {
  std::size_t submitted = 0;
  std::size_t reaped = 0;
  while (reaped < count) {
    Segment segment;
    segment.size_bytes = 1 << 20;
    if (submitted < count) submitted += threaded.submit({&segment, 1});
    Completion completions[8];
    const auto got = threaded.reap(completions);
    reaped += got;
    if (got == 0 && submitted == count) wake.wait(UINT64_MAX);
  }
}

TEST(Threaded, NoMoreWorkAtOnceThanTheLimitAllows) {
  auto wake = Wake::create();
  os::Syscalls meeting = os::kernel();
  meeting.pread = meeting_pread;
  const auto limit = std::make_shared<std::atomic<std::uint32_t>>(3);
  Threaded threaded([&meeting] { return std::make_unique<Posix>(meeting); }, 5, **wake, limit);
  wanted_inside = most_inside = 3;
  move_all(threaded, **wake, 20);
  EXPECT_EQ(threaded.capabilities().threads, 3U) << "of five";
  wanted_inside = most_inside = 0;
  limit->store(1);
  move_all(threaded, **wake, 20);
  EXPECT_EQ(most_inside, 1);
  limit->store(5);
  wanted_inside = 5;
  most_inside = 0;
  move_all(threaded, **wake, 20);
  EXPECT_EQ(most_inside, 5) << "it grows back";
  EXPECT_EQ(threaded.capabilities().threads, 5U);
}

}  // namespace
}  // namespace straightway::transport
