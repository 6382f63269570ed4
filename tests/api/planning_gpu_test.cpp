// What one call's ranges share is looked up once, and is right for each, on the simulated GPU.

#include <gtest/gtest.h>

#include "api/planning.hpp"
#include "tests/memory/gpu_fixture.hpp"
#include "tests/temp_file.hpp"

namespace straightway {
namespace {

constexpr std::uint64_t count = 50;
constexpr std::uint64_t each = 3000;

class Planned : public memory::Gpu {
 protected:
  Planned() : bytes(tests::pattern(count * each + 77)), path(folder.write("a", bytes)) {}
  void SetUp() override {
    Gpu::SetUp();
    use_device(0);
    device = user_memory(count * each);
    context = std::move(Context::create({})).value();
    file = std::move(File::open(path, "r+", {}, context)).value();
  }
  static Memory at(std::uint64_t address, std::uint64_t size) {
    return {reinterpret_cast<void*>(address), size};
  }
  std::uint64_t questions() { return fake_.calls_of("cuPointerGetAttributes"); }
  // Range i of the file into the i-th place from the end.
  std::vector<RangeRequest> backwards() {
    std::vector<RangeRequest> ranges;
    for (std::uint64_t i = 0; i < count; ++i) {
      ranges.push_back({i * each, each, at(device + (count - 1 - i) * each, each)});
    }
    return ranges;
  }
  void expect_backwards() {
    const auto got = device_bytes(device, count * each);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto begin = got.begin() + static_cast<std::ptrdiff_t>((count - 1 - i) * each);
      EXPECT_TRUE(std::equal(begin, begin + each,
                             bytes.begin() + static_cast<std::ptrdiff_t>(i * each),
                             [](auto a, char b) { return static_cast<char>(a) == b; }))
          << i;
    }
  }

  tests::TempFolder folder;
  std::vector<char> bytes;
  std::string path;
  memory::cuda::DevicePointer device = 0;
  std::shared_ptr<Context> context;
  File file;
};

TEST_F(Planned, TheDriverIsAskedOnceForOneAllocation) {
  const auto before = questions();
  ASSERT_TRUE(file.read_ranges(backwards()));
  EXPECT_EQ(questions(), before + 1);
  expect_backwards();
  // The next call asks again: the memory may be another by then.
  ASSERT_TRUE(file.read_ranges(backwards()));
  EXPECT_EQ(questions(), before + 2);
}

// It is planned before it shows that the caller's own thread does not do it.
TEST_F(Planned, ACallThatThePumpDoesIsPlannedOnce) {
  CallOptions watched;
  watched.on_progress = [](const Progress&) {};
  const auto before = questions();
  const auto receipt = file.read_into(at(device, count * each), watched);
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_EQ(questions(), before + 1);
  const auto got = device_bytes(device, count * each);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), bytes.begin(),
                         [](auto a, char b) { return static_cast<char>(a) == b; }));
}

TEST_F(Planned, OneMemoryIsAskedForOnce) {
  std::vector<PlacedRange> ranges;
  for (std::uint64_t i = 0; i < count; ++i) {
    ranges.push_back({i * each, each, (count - 1 - i) * each});
  }
  const auto before = questions();
  const auto receipt = file.read_ranges(at(device, count * each), ranges);
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_EQ(receipt->routes[index(Route::staged)].bytes, count * each);
  EXPECT_EQ(questions(), before + 1);
  expect_backwards();
  std::vector<char> host(count * each);
  const auto into_host = file.read_ranges({host.data(), host.size()}, ranges);
  ASSERT_TRUE(into_host) << into_host.error().message();
  EXPECT_EQ(into_host->routes[index(Route::buffered)].bytes, count * each);
  EXPECT_EQ(questions(), before + 2);
}

TEST_F(Planned, ARangeBehindTheAllocationIsRefused) {
  auto ranges = backwards();
  ranges.push_back({0, each, at(device + count * each - 1, each)});
  const auto receipt = file.read_ranges(ranges);
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(receipt.error().path, path);
  // The placed ones too, where the memory is said to be larger than it is.
  const std::vector<PlacedRange> placed{{0, each, 0}, {0, each, count * each - 1}};
  EXPECT_FALSE(file.read_ranges(at(device, 2 * count * each), placed));
}

TEST_F(Planned, TwoAllocationsAreTwo) {
  const auto second = user_memory(each);
  const std::vector<RangeRequest> ranges{{0, each, at(device, each)},
                                         {each, each, at(second, each)},
                                         {2 * each, each, at(device + each, each)}};
  ASSERT_TRUE(file.read_ranges(ranges));
  const auto got = device_bytes(second, each);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), bytes.begin() + each,
                         [](auto a, char b) { return static_cast<char>(a) == b; }));
}

TEST_F(Planned, WhatAnOwnerSaysOfItsDeviceIsCheckedForEach) {
  auto ranges = backwards();
  for (auto& range : ranges) range.memory.device = 0;
  ASSERT_TRUE(file.read_ranges(ranges));
  ranges.back().memory.device = 1;
  EXPECT_FALSE(file.read_ranges(ranges));
}

TEST_F(Planned, ARangeOfNothingSaysNothingOfTheMemory) {
  std::vector<char> host(each);
  const Memory nowhere{};
  const auto receipt = file.read_ranges({{0, 0, nowhere}, {each, each, at(device, each)}});
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_EQ(receipt->moved_bytes, each);
  EXPECT_FALSE(file.read_ranges(
      {{0, 0, nowhere}, {each, each, at(device, each)}, {0, each, {host.data(), each}}}));
}

TEST_F(Planned, EachPlanIsThatOfTheRangeAlone) {
  const auto opened = std::move(OpenFile::open(path, "r", {}, context->engine())).value();
  const auto settings = opened->settings;
  Planning planning(Direction::read, settings);
  for (const auto& wanted : backwards()) {
    const CallRange range{FileUse(opened), wanted.offset, wanted.size_bytes, wanted.memory};
    const auto together = planning.plan(range);
    const auto alone = plan_call(Direction::read, range, settings);
    ASSERT_TRUE(together && alone);
    EXPECT_EQ(*together, *alone);
  }
}

TEST_F(Planned, ASourceThatIsNotThereIsFoundBeforeAnythingIsWritten) {
  std::vector<char> host(each);
  const std::vector<PlacedRange> ranges{{0, each, 0}, {1 << 20, each, std::uint64_t{1} << 46}};
  const Memory too_large{host.data(), std::size_t{1} << 47};
  const auto receipt = file.write_ranges(too_large, ranges);
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().code, EFAULT);
  EXPECT_EQ(folder.read("a"), bytes);
}

}  // namespace
}  // namespace straightway
