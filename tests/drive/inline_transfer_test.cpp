#include "drive/inline_transfer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

namespace straightway::drive {
namespace {

// What the scripted pread answers, call by call: a count of bytes or -errno.
struct Script {
  std::vector<std::int64_t> answers;
  std::size_t calls = 0;
  std::vector<int> descriptors;
};
thread_local Script script;

std::int64_t scripted_pread(int fd, void* to, std::size_t size, std::uint64_t offset) {
  script.descriptors.push_back(fd);
  const auto answer = script.calls < script.answers.size() ? script.answers[script.calls] : 0;
  ++script.calls;
  if (answer > 0) {
    EXPECT_LE(static_cast<std::size_t>(answer), size);
    std::memset(to, static_cast<int>('a' + offset % 26), static_cast<std::size_t>(answer));
  }
  return answer;
}

class InlineTransfer : public testing::Test {
 protected:
  InlineTransfer() {
    syscalls.pread = scripted_pread;
    plan.request.file = {50, 200};
    plan.request.memory.address = reinterpret_cast<std::uint64_t>(memory);
    plan.runs[0].file = {50, 200};
    plan.runs[0].segment_bytes = 4096;
    plan.runs[0].reason = Reason::small_request;
    plan.run_count = 1;
    std::memset(memory, 0x55, sizeof memory);
  }
  std::optional<Error> move(std::vector<std::int64_t> answers, bool may_fall_back = true) {
    script = {std::move(answers), 0, {}};
    return transfer_inline(syscalls, plan, {3, 4}, "a.bin", may_fall_back, crew, receipt);
  }
  os::Syscalls syscalls{};
  Crew* crew = nullptr;
  Plan plan;
  Receipt receipt;
  char memory[256];
};

TEST_F(InlineTransfer, A2_LoopsOnShortAndInterrupted) {
  EXPECT_FALSE(move({20, -EINTR, 30, 0}));
  EXPECT_EQ(receipt.moved_bytes, 50U);
  EXPECT_EQ(receipt.end_of_file, 100U);
  EXPECT_EQ(receipt.retries, 3U);
  EXPECT_EQ(receipt.routes[index(Route::buffered)].segments, 1U);
  EXPECT_EQ(memory[0], 'a' + 50 % 26);
  EXPECT_EQ(memory[20], 'a' + 70 % 26);
  EXPECT_EQ(memory[50], 0x55);  // nothing behind the end was touched
}

TEST_F(InlineTransfer, FailsWithWhatWasAttempted) {
  const auto error = move({100, -EIO});
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, EIO);
  EXPECT_EQ(error->offset, 150U);
}

TEST_F(InlineTransfer, AnInterruptStormEnds) {
  const auto error = move(std::vector<std::int64_t>(5000, -EINTR));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, EINTR);
}

TEST_F(InlineTransfer, DirectFallsBackOnceAndSaysSo) {
  plan.runs[0].route = Route::direct_host;
  plan.runs[0].direct_io = true;
  plan.runs[0].align_bytes = 512;
  EXPECT_FALSE(move({-EINVAL, 200}));
  EXPECT_EQ(script.descriptors, (std::vector<int>{4, 3}));
  EXPECT_EQ(receipt.fallbacks, 1U);
  EXPECT_EQ(receipt.fallback_code, EINVAL);
  EXPECT_EQ(receipt.routes[index(Route::direct_host)].bytes, 0U);
  EXPECT_EQ(receipt.routes[index(Route::buffered)].reason, Reason::fell_back);
  receipt = {};
  const auto error = move({-EINVAL}, false);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, ErrorKind::route_refused);
}

// A file of this length, whose byte at an offset follows from it; it may fail behind an offset.
std::atomic<std::uint64_t> file_end{0};
std::atomic<std::uint64_t> bad_from{UINT64_MAX};
char byte_at(std::uint64_t offset) { return static_cast<char>(offset * 2654435761 >> 13); }

std::int64_t file_pread(int, void* to, std::size_t size, std::uint64_t offset) {
  if (offset + size > bad_from) return -EIO;
  if (offset >= file_end) return 0;
  const auto count = std::min<std::uint64_t>(size, file_end - offset);
  for (std::uint64_t i = 0; i < count; ++i) static_cast<char*>(to)[i] = byte_at(offset + i);
  return static_cast<std::int64_t>(count);
}

class SharedTransfer : public testing::Test {
 protected:
  SharedTransfer() {
    syscalls.pread = file_pread;
    plan.request.file = plan.runs[0].file = {1000, memory.size()};
    plan.request.memory.address = reinterpret_cast<std::uint64_t>(memory.data());
    plan.runs[0].segment_bytes = crew_limit_bytes;
    plan.run_count = 1;
    file_end = UINT64_MAX;
    bad_from = UINT64_MAX;
  }
  std::optional<Error> move() {
    return transfer_inline(syscalls, plan, {3, 4}, "a.bin", true, &crew, receipt);
  }
  std::uint64_t right_bytes() const {
    std::uint64_t count = 0;
    while (count < memory.size() && memory[count] == byte_at(1000 + count)) ++count;
    return count;
  }
  os::Syscalls syscalls{};
  Crew crew{3};
  Plan plan;
  Receipt receipt;
  std::vector<char> memory = std::vector<char>(crew_limit_bytes - 777, 'x');
};

TEST_F(SharedTransfer, EveryPartArrives) {
  EXPECT_FALSE(move());
  EXPECT_EQ(right_bytes(), memory.size());
  EXPECT_EQ(receipt.moved_bytes, memory.size());
  EXPECT_EQ(receipt.routes[index(Route::buffered)].segments, 8U);
  EXPECT_EQ(receipt.threads, 4U);
}

TEST_F(SharedTransfer, NothingBehindTheEndCounts) {
  file_end = 1000 + 300'000;
  EXPECT_FALSE(move());
  EXPECT_EQ(receipt.moved_bytes, 300'000U);
  EXPECT_EQ(receipt.end_of_file, file_end);
  EXPECT_EQ(right_bytes(), 300'000U);
  EXPECT_EQ(memory[300'000], 'x');
}

TEST_F(SharedTransfer, TheFirstErrorIsTold) {
  bad_from = 1000 + 300'000;
  const auto error = move();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, EIO);
  EXPECT_EQ(error->offset, 1000 + 2 * crew_piece_bytes);
}

}  // namespace
}  // namespace straightway::drive
