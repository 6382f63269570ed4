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

// A desk whose device is host memory, and which can fail.
class HostDesk final : public memory::Desk {
 public:
  std::byte* data() const override { return bytes_.data(); }
  std::size_t size_bytes() const override { return bytes_.size(); }
  bool is_idle(std::optional<void*>) override { return true; }
  Result<void> copy(Direction, std::uint64_t to, std::size_t size, std::optional<void*>) override {
    return copy_held(to, data(), size, {});
  }
  Result<void> copy_held(std::uint64_t to, std::byte* from, std::size_t size,
                         std::optional<void*>) override {
    if (++copies == bad_copy)
      return Error{ErrorKind::device, ErrorOrigin::cuda, 700, {}, {}, {}, {}, {}};
    EXPECT_GE(from, data());
    EXPECT_LE(from + size, data() + size_bytes());
    std::memcpy(reinterpret_cast<void*>(to), from, size);
    return {};
  }
  int copies = 0;
  int bad_copy = 0;

 private:
  mutable std::vector<std::byte> bytes_ = std::vector<std::byte>(crew_desk_bytes);
};

class WindowTransfer : public SharedTransfer {
 protected:
  WindowTransfer() {
    memory.assign(5 * crew_limit_bytes + 123, 'x');
    plan.request.file = plan.runs[0].file = {1000, memory.size()};
    plan.request.memory.address = reinterpret_cast<std::uint64_t>(memory.data());
    plan.runs[0].route = Route::staged;
  }
  std::optional<Error> move_by_desk() {
    return transfer_inline_device(syscalls, plan, {3, 4}, "a.bin", desk, {}, &crew, receipt);
  }
  HostDesk desk;
};

TEST_F(WindowTransfer, EveryWindowArrivesInItsPlace) {
  for (int i = 0; i < 20; ++i) {
    memory.assign(memory.size(), 'x');
    desk.copies = 0;
    receipt = {};
    EXPECT_FALSE(move_by_desk());
    ASSERT_EQ(right_bytes(), memory.size());
    EXPECT_EQ(receipt.moved_bytes, memory.size());
    EXPECT_EQ(receipt.routes[index(Route::staged)].bytes, memory.size());
    EXPECT_EQ(receipt.wanted_bytes, memory.size());
    EXPECT_EQ(desk.copies, 6);
    EXPECT_EQ(receipt.pinned_bytes, crew_desk_bytes);
  }
}

TEST_F(WindowTransfer, NothingBehindTheEndIsCopied) {
  for (const std::uint64_t size :
       {std::uint64_t{0}, 2 * crew_limit_bytes + 5, 3 * crew_limit_bytes}) {
    memory.assign(memory.size(), 'x');
    receipt = {};
    file_end = 1000 + size;
    EXPECT_FALSE(move_by_desk());
    EXPECT_EQ(receipt.moved_bytes, size);
    EXPECT_EQ(receipt.end_of_file, file_end);
    EXPECT_EQ(right_bytes(), size);
    EXPECT_EQ(memory[size], 'x');
  }
}

TEST_F(WindowTransfer, AnErrorOfTheFileEndsIt) {
  bad_from = 1000 + 3 * crew_limit_bytes;
  const auto error = move_by_desk();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, EIO);
  EXPECT_EQ(error->offset, bad_from);
  EXPECT_EQ(memory[3 * crew_limit_bytes], 'x');
}

TEST_F(WindowTransfer, AnErrorOfTheDeviceEndsItWithItsPlace) {
  for (const int bad : {1, 3, 6}) {
    desk.copies = 0;
    desk.bad_copy = bad;
    const auto error = move_by_desk();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, 700);
    EXPECT_EQ(error->offset, 1000 + (bad - 1) * crew_limit_bytes);
    EXPECT_EQ(error->path, "a.bin");
    EXPECT_EQ(desk.copies, bad);
  }
}

TEST_F(WindowTransfer, ABusyCrewLeavesItToTheCaller) {
  std::optional<Error> error;
  ASSERT_TRUE(crew.run(1, [&](std::uint32_t) { error = move_by_desk(); }));
  EXPECT_FALSE(error);
  EXPECT_EQ(right_bytes(), memory.size());
}

}  // namespace
}  // namespace straightway::drive
