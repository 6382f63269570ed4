// Device memory on a bad day: no pinned memory, no device, forks, faults on the way.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "tests/cases/bad_kernel.hpp"
#include "tests/cases/in_child.hpp"
#include "tests/memory/gpu_fixture.hpp"
#include "tests/temp_file.hpp"

namespace straightway {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

class Devices : public memory::Gpu {
 protected:
  Devices() : bytes(tests::pattern(5 * mib + 321)), path(folder.write("a", bytes)) {
    ContextOptions options;
    options.pinned_bytes = 8 * mib;
    options.threads = 4;
    context = kernel.context(options);
  }
  void SetUp() override {
    Gpu::SetUp();
    use_device(0);
    device = user_memory(bytes.size());
  }
  File open(std::string_view mode = "r") {
    return std::move(File::open(path, mode, {}, context)).value();
  }
  Memory all() const { return {reinterpret_cast<void*>(device), bytes.size()}; }
  void clear() const {
    const std::vector<char> other(bytes.size(), 'x');
    ASSERT_EQ(fake_.write(device, other.data(), other.size()), 0);
  }
  std::vector<char> device_chars() { return device_chars(bytes.size()); }
  std::vector<char> device_chars(std::size_t size) { return Gpu::device_chars(device, size); }

  tests::TempFolder folder;
  tests::BadKernel kernel;
  std::vector<char> bytes;
  std::string path;
  std::shared_ptr<Context> context;
  memory::cuda::DevicePointer device = 0;
};

TEST_F(Devices, E18_ARefusedRingIsTriedSmaller) {
  fake_.fail_next("cuMemHostRegister", 2, memory::cuda::out_of_memory);
  const auto receipt = open().read_into(all());
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_LE(receipt->pinned_bytes, 2 * mib);
  EXPECT_GT(receipt->pinned_bytes, mib);
  EXPECT_EQ(device_chars(), bytes);
}

TEST_F(Devices, E18_WithoutAnyPinnedMemoryTheErrorIsClearAndTheNextCallMayWork) {
  fake_.fail_next("cuMemHostRegister", 100, memory::cuda::out_of_memory);
  const auto file = open();
  const auto receipt = file.read_into(all());
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().kind, ErrorKind::out_of_memory);
  EXPECT_EQ(receipt.error().origin, ErrorOrigin::cuda);
  EXPECT_NE(receipt.error().message().find("pin"), std::string::npos) << receipt.error().message();
  EXPECT_EQ(fake_.pinned_bytes(), 0U);
  EXPECT_EQ(kernel.moves.load(), 0);
  fake_.heal();
  ASSERT_TRUE(file.read_into(all()));
  EXPECT_EQ(device_chars(), bytes);
}

TEST_F(Devices, E17_AReadBeyondTheBudgetOfPinnedMemoryIsChunked) {
  ContextOptions options;
  options.pinned_bytes = mib;
  context = kernel.context(options);
  const auto receipt = open().read_into(all());
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_LE(receipt->pinned_bytes, mib);
  EXPECT_GE(receipt->routes[index(Route::staged)].segments, 6U);
  EXPECT_EQ(receipt->routes[index(Route::staged)].bytes, bytes.size());
  EXPECT_EQ(device_chars(), bytes);
}

TEST_F(Devices, C4_ContextsComeAndGoInFiveThreadsAtOnce) {
  constexpr std::uint64_t share = mib + 64;
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 5; ++i) {
    threads.emplace_back([&, i] {
      ContextOptions options;
      options.pinned_bytes = mib;
      CallOptions call;
      call.offset = i * share;
      const Memory mine{reinterpret_cast<void*>(device + i * share), share};
      for (int round = 0; round < 10; ++round) {
        auto own = Context::create(options);
        if (!own) continue;
        const auto file = File::open(path, "r", {}, *own);
        const auto receipt = file ? file->read_into(mine, call) : file.error();
        if (receipt && receipt->moved_bytes == share) ++right;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right.load(), 50);
  EXPECT_EQ(std::vector<char>(bytes.begin(), bytes.begin() + 5 * share), device_chars(5 * share));
}

TEST_F(Devices, A2_InterruptedAndShortTransfersGiveTheSameBytes) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (const auto cache : {Cache::automatic, Cache::bypass}) {
      kernel.on_move = tests::storm(seed);
      CallOptions options;
      options.cache = cache;
      clear();
      const auto receipt = open().read_into(all(), options);
      ASSERT_TRUE(receipt) << receipt.error().message();
      ASSERT_EQ(device_chars(), bytes) << "seed " << seed;
      auto out = std::move(File::open(folder.path("out"), "w", {}, context)).value();
      const auto written = out.write_from(all(), options);
      ASSERT_TRUE(written) << written.error().message();
      ASSERT_EQ(folder.read("out"), bytes) << "seed " << seed;
    }
  }
}

TEST_F(Devices, G5_ManyTilesAllocateOnceAndAreUnderWayTogether) {
  constexpr std::uint64_t tile = 16 << 10;
  constexpr std::uint64_t count = 256;
  std::vector<PlacedRange> tiles;  // with gaps in the file, and the other way round in the memory
  std::vector<char> expected;
  for (std::uint64_t i = 0; i < count; ++i) {
    tiles.push_back({i * (tile + 4096), tile, (count - 1 - i) * tile});
    const auto at = bytes.begin() + static_cast<long>((count - 1 - i) * (tile + 4096));
    expected.insert(expected.end(), at, at + tile);
  }
  const auto allocations = [&] {
    return fake_.calls_of("cuMemHostRegister") + fake_.calls_of("cuMemHostAlloc") +
           fake_.calls_of("cuStreamCreate");
  };
  const auto file = open();
  const auto first = file.read_ranges(all(), tiles);
  ASSERT_TRUE(first) << first.error().message();
  const auto before = allocations();
  clear();
  const int moves_before = kernel.moves;
  fake_.hold_copies(1);
  auto job = std::move(file.submit_ranges(Direction::read, all(), tiles)).value();
  while (kernel.moves < moves_before + 64) std::this_thread::yield();  // no copy has ended
  fake_.hold_copies(0);
  const auto receipt = job.result();
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_EQ(device_chars(count * tile), expected);
  EXPECT_EQ(allocations(), before);
  EXPECT_EQ(fake_.calls_of("cuStreamSynchronize") + fake_.calls_of("cuEventSynchronize"), 0U);
}

TEST_F(Devices, D4_AnErrorInTheMiddleFailsTheCallAndTheNextWorks) {
  for (const auto direction : {Direction::read, Direction::write}) {
    auto file = open("r+");
    kernel.on_move = [](tests::Attempt& attempt) -> std::optional<std::int64_t> {
      if (attempt.offset >= 3 * mib) return -EIO;
      return std::nullopt;
    };
    const auto failed =
        direction == Direction::read ? file.read_into(all()) : file.write_from(all());
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, EIO);
    EXPECT_EQ(failed.error().path, path);
    EXPECT_EQ(kernel.in_flight.load(), 0);
    kernel.on_move = nullptr;
    clear();
    ASSERT_TRUE(file.read_into(all()));
    EXPECT_EQ(device_chars(), bytes);
  }
}

TEST_F(Devices, E3_ARefusedODirectOpenIsReadThroughTheCache) {
  const auto file = open();
  if (file.facts()->direct_offset_align_bytes == 0) GTEST_SKIP() << "no O_DIRECT here";
  kernel.on_open = [](const std::string&, int flags) -> std::optional<int> {
    if ((flags & O_DIRECT) != 0) return -EINVAL;
    return std::nullopt;
  };
  CallOptions options;
  options.cache = Cache::bypass;
  const auto receipt = file.read_into(all(), options);
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_EQ(receipt->routes[index(Route::staged)].reason, Reason::fell_back);
  EXPECT_EQ(receipt->fallback_code, EINVAL);
  EXPECT_EQ(device_chars(), bytes);
}

TEST_F(Devices, C7_ADeviceThatIsLostMeanwhileEndsWithOneErrorAndARebuild) {
  const auto file = open();
  ASSERT_TRUE(file.read_into(all()));
  fake_.fail_copies(memory::cuda::illegal_address);
  const auto failed = file.read_into(all());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::device);
  EXPECT_EQ(failed.error().path, path);
  EXPECT_EQ(kernel.in_flight.load(), 0);
  fake_.heal();
  ASSERT_EQ(fake_.user.primary_reset(0), memory::cuda::success);
  use_device(0);
  device = user_memory(bytes.size());
  const auto again = file.read_into(all());
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(device_chars(), bytes);
}

TEST_F(Devices, AForkWithReadsUnderWayRefusesTheGpuAndReadsHostMemory) {
  std::atomic<bool> released{false};
  kernel.on_move = [&](tests::Attempt&) -> std::optional<std::int64_t> {
    while (!released.load()) std::this_thread::sleep_for(1ms);
    return std::nullopt;
  };
  auto file = open();
  auto job = std::move(file.submit_read(all())).value();
  while (kernel.in_flight.load() == 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(tests::in_child([&] {
              kernel.on_move = nullptr;
              if (job.result().ok() || job.result().error().kind != ErrorKind::forked) return 1;
              const auto refused = file.read_into(all());
              if (refused || refused.error().kind != ErrorKind::forked) return 2;
              const auto warm = context->warmup(0);
              if (warm) return 3;
              std::vector<char> memory(bytes.size());
              if (!file.read_into({memory.data(), memory.size()}) || memory != bytes) return 4;
              return file.close() ? 0 : 5;
            }),
            0);
  released = true;
  ASSERT_TRUE(job.result());
  EXPECT_EQ(device_chars(), bytes);
}

// Each runs in a process started afresh, since the driver is loaded once in each.
class NoDevice : public testing::Test {
 protected:
  NoDevice() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // 0: the machine, warmup and a plan say that there is no device and why, and host memory works.
  static int asked(const std::string& part) {
    const tests::TempFolder folder;
    const auto bytes = tests::pattern(mib);
    const auto context = std::move(Context::create()).value();
    const auto file = std::move(File::open(folder.write("a", bytes), "r", {}, context)).value();
    const auto machine = context->machine(true).value();
    std::cerr << machine->cuda_why_not << '\n';
    if (machine->cuda_devices != 0) return 1;
    if (machine->cuda_why_not.find(part) == std::string::npos) return 2;
    const auto plan = file.explain(Direction::read, SpaceKind::cuda, 0, mib);
    if (!plan || plan->failure != Reason::no_gpu) return 3;
    const auto warm = context->warmup(0);
    if (warm || warm.error().message().find(part) == std::string::npos) return 4;
    std::vector<char> memory(mib);
    const auto receipt = file.read_into({memory.data(), mib});
    return receipt && memory == bytes ? 0 : 5;
  }

  [[noreturn]] static void ask(const char* variable, const char* value, const char* part) {
    ::setenv(variable, value, 1);
    ::_exit(asked(part));
  }
};

TEST_F(NoDevice, E7_ADriverWithoutAGpuIsSaidSo) {
  EXPECT_EXIT(ask("FAKE_CUDA_DEVICES", "0", "no device"), testing::ExitedWithCode(0), "no device");
}

TEST_F(NoDevice, E7_ADriverThatDoesNotStartIsSaidSo) {
  EXPECT_EXIT(ask("FAKE_CUDA_INIT", "999", "cuInit failed"), testing::ExitedWithCode(0),
              "cuInit failed");
}

}  // namespace
}  // namespace straightway
