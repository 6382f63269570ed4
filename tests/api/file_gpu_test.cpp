// The front door with device memory, on the simulated GPU.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "os/descriptor.hpp"
#include "os/disk_account.hpp"
#include "straightway/file.hpp"
#include "tests/cases/in_child.hpp"
#include "tests/memory/gpu_fixture.hpp"
#include "tests/temp_file.hpp"

namespace straightway {
namespace {

class GpuFile : public memory::Gpu {
 protected:
  GpuFile() : bytes(tests::pattern((5 << 20) + 321)), path(folder.write("a", bytes)) {
    ContextOptions options;
    options.pinned_bytes = 3 << 20;  // a ring that is reused often
    context = std::move(Context::create(options)).value();
  }
  void SetUp() override {
    Gpu::SetUp();
    use_device(0);
    device = user_memory(bytes.size() + 8192);
    std::vector<unsigned char> x(bytes.size() + 8192, 'x');
    fake_.write(device, x.data(), x.size());
  }
  File open(std::string_view mode = "r") {
    return std::move(File::open(path, mode, {}, context)).value();
  }
  static Memory at(std::uint64_t address, std::uint64_t size) {
    return {reinterpret_cast<void*>(address), size};
  }

  tests::TempFolder folder;
  std::vector<char> bytes;
  std::string path;
  std::shared_ptr<Context> context;
  memory::cuda::DevicePointer device = 0;
};

// What one thread made the storage read when it read the file by itself past the page cache.
std::int64_t plain_disk_bytes(const std::string& path, std::size_t size) {
  const os::Descriptor direct(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  if (!direct) return -1;
  ::fsync(direct.get());
  std::vector<char> memory(size + 4096);
  const auto begin = (reinterpret_cast<std::uint64_t>(memory.data()) + 4095) & ~4095ULL;
  const os::DiskAccount account;
  const auto before = account.read_bytes();
  if (::pread(direct.get(), reinterpret_cast<void*>(begin), size, 0) < 0) return -1;
  return account.read_bytes() - before;
}

TEST_F(GpuFile, AReceiptSaysWhatTheDiskReadForAStagedRead) {
  constexpr std::size_t size = 4 << 20;
  const auto file = open();
  if (plain_disk_bytes(path, size) != size) GTEST_SKIP() << "O_DIRECT reads no disk here";
  CallOptions options;
  options.cache = Cache::bypass;
  const auto receipt = file.read_into(at(device, size), options);
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_EQ(receipt->routes[index(Route::staged)].bytes, size);
  EXPECT_TRUE(receipt->disk_measured);
  EXPECT_EQ(receipt->disk_bytes, size);
}

TEST_F(GpuFile, ReadsEveryOffsetSizeAndPointerStaged) {
  const auto file = open();
  for (const auto cache : {Cache::automatic, Cache::bypass}) {
    for (const std::uint64_t offset : {0UL, 1UL, 4096UL, 4097UL, (1UL << 20) + 5}) {
      for (const std::uint64_t size : {1UL, 100UL, 4096UL, 70000UL, 4UL << 20, 5UL << 20}) {
        const auto shift = offset % 13;
        CallOptions options;
        options.offset = offset;
        options.cache = cache;
        const auto receipt = file.read_into(at(device + shift, size), options);
        ASSERT_TRUE(receipt) << receipt.error().message();
        const auto want = std::min<std::uint64_t>(size, bytes.size() - offset);
        EXPECT_EQ(receipt->moved_bytes, want);
        EXPECT_EQ(receipt->memory.space, SpaceKind::cuda);
        EXPECT_EQ(receipt->memory.device, 0);
        EXPECT_EQ(receipt->routes[index(Route::staged)].bytes, want);
        EXPECT_EQ(receipt->routes[index(Route::staged)].evidence.kind, EvidenceKind::observed);
        EXPECT_LE(receipt->pinned_bytes, 3U << 20);
        const auto got = device_chars(device + shift, want + 1);
        ASSERT_TRUE(std::equal(got.begin(), got.end() - 1,
                               bytes.begin() + static_cast<std::ptrdiff_t>(offset)))
            << offset << ' ' << size;
        std::vector<char> clean(want + 64, 'x');
        fake_.write(device, clean.data(), clean.size());
      }
    }
  }
}

TEST_F(GpuFile, WritesEveryOffsetAndSize) {
  fake_.write(device, bytes.data(), bytes.size());
  for (const auto cache : {Cache::automatic, Cache::bypass}) {
    for (const std::uint64_t offset : {0UL, 1UL, 4096UL, 5000UL}) {
      for (const std::uint64_t size : {1UL, 4096UL, 70001UL, 3UL << 20}) {
        folder.write("out", std::vector<char>(9000, 'o'));
        auto file = std::move(File::open(folder.path("out"), "r+", {}, context)).value();
        CallOptions options;
        options.offset = offset;
        options.cache = cache;
        const auto receipt = file.write_from(at(device + 3, size), options);
        ASSERT_TRUE(receipt) << receipt.error().message();
        EXPECT_EQ(receipt->moved_bytes, size);
        std::vector<char> want(std::max<std::uint64_t>(9000, offset + size), 'o');
        std::copy_n(bytes.begin() + 3, size, want.begin() + static_cast<std::ptrdiff_t>(offset));
        ASSERT_EQ(folder.read("out"), want) << offset << ' ' << size;
      }
    }
  }
}

TEST_F(GpuFile, A18_TheMemoryIsCheckedAgainstItsAllocation) {
  const auto file = open();
  const auto end = device + bytes.size() + 8192;
  EXPECT_TRUE(file.read_into(at(end - (1 << 20), 1 << 20)));
  const auto beyond = file.read_into(at(end - (1 << 20), (1 << 20) + 1));
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().kind, ErrorKind::invalid_argument);
}

TEST_F(GpuFile, PolicyDirectIsRefusedWithEveryReason) {
  const auto file = open();
  CallOptions options;
  options.policy = Policy::direct;
  const auto refused = file.read_into(at(device, 1 << 20), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::route_refused);
  EXPECT_NE(refused.error().message().find("nvfs"), std::string::npos);
  EXPECT_NE(refused.error().message().find("p2pdma"), std::string::npos);
  EXPECT_EQ(device_chars(device, 4), std::vector<char>(4, 'x'));
}

TEST_F(GpuFile, C10_AReadComesAfterTheKernelOnTheDefaultStream) {
  const auto file = open();
  ASSERT_EQ(fake_.fill_later(device, 'k', 1 << 20, nullptr, 30000), 0);
  const auto receipt = file.read_into(at(device, 1 << 20));
  ASSERT_TRUE(receipt);
  EXPECT_EQ(device_chars(device, 1 << 20),
            std::vector<char>(bytes.begin(), bytes.begin() + (1 << 20)));
}

TEST_F(GpuFile, C10_AWriteTakesWhatTheStreamsKernelLeft) {
  auto* stream = user_stream(1);
  ASSERT_EQ(fake_.fill_later(device, 'k', 1 << 20, stream, 30000), 0);
  auto file = std::move(File::open(folder.path("out"), "w", {}, context)).value();
  CallOptions options;
  options.stream = Stream{stream};
  ASSERT_TRUE(file.write_from(at(device, 1 << 20), options));
  EXPECT_EQ(folder.read("out"), std::vector<char>(1 << 20, 'k'));
}

TEST_F(GpuFile, SubmittingDoesNotWaitForTheStream) {
  fake_.hold(1);  // nothing queued runs
  ASSERT_EQ(fake_.fill_later(device, 'k', 1 << 20, nullptr, 0), 0);
  const auto file = open();
  auto job = std::move(file.submit_read(at(device, 1 << 20))).value();
  EXPECT_FALSE(job.done());
  EXPECT_EQ(job.progress().moved_bytes, 0U);
  auto cancelled = std::move(file.submit_read(at(device + (2 << 20), 1 << 20))).value();
  EXPECT_TRUE(cancelled.cancel());
  EXPECT_EQ(cancelled.result().error().kind, ErrorKind::cancelled);
  CallOptions options;
  options.deadline = std::chrono::milliseconds(5);
  const auto late = file.read_into(at(device + (2 << 20), 1 << 20), options);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::deadline_exceeded);
  fake_.hold(0);
  ASSERT_TRUE(job.result());
  EXPECT_EQ(device_chars(device, 1 << 20),
            std::vector<char>(bytes.begin(), bytes.begin() + (1 << 20)));
}

TEST_F(GpuFile, C15_TheDeviceComesFromThePointer) {
  const auto other = fake_.allocate(1, 1 << 20);
  const auto receipt = open().read_into(at(other, 1 << 20));
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_EQ(receipt->memory.device, 1);
  EXPECT_EQ(device_chars(other, 1 << 20),
            std::vector<char>(bytes.begin(), bytes.begin() + (1 << 20)));
}

TEST_F(GpuFile, RangesOfOneCallLieInOneSpace) {
  const auto file = open();
  std::vector<char> host(100);
  const auto mixed = file.read_ranges({{0, 100, at(device, 100)}, {0, 100, {host.data(), 100}}});
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().kind, ErrorKind::invalid_argument);
  std::vector<RangeRequest> ranges;
  for (std::uint64_t i = 0; i < 200; ++i) {
    ranges.push_back({i * 9973, 5000, at(device + i * 5000, 5000)});
  }
  const auto receipt = file.read_ranges(ranges);
  ASSERT_TRUE(receipt) << receipt.error().message();
  const auto got = device_chars(device, 1000000);
  for (std::size_t i = 0; i < 200; ++i) {
    EXPECT_TRUE(std::equal(got.begin() + static_cast<std::ptrdiff_t>(i * 5000),
                           got.begin() + static_cast<std::ptrdiff_t>(i * 5000 + 5000),
                           bytes.begin() + static_cast<std::ptrdiff_t>(i * 9973)))
        << i;
  }
}

TEST_F(GpuFile, ALostDeviceIsAnErrorOnceAndARebuildAfter) {
  const auto file = open();
  ASSERT_TRUE(file.read_into(at(device, 1 << 20)));
  fake_.lose_device(0);
  const auto memory_gone = file.read_into(at(device, 1 << 20));
  EXPECT_FALSE(memory_gone);
  use_device(0);
  const auto fresh = user_memory(1 << 20);
  ASSERT_NE(fresh, 0U);
  auto receipt = file.read_into(at(fresh, 1 << 20));
  if (!receipt) receipt = file.read_into(at(fresh, 1 << 20));
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_EQ(device_chars(fresh, 1 << 20),
            std::vector<char>(bytes.begin(), bytes.begin() + (1 << 20)));
}

TEST_F(GpuFile, E9_ARingThatCannotBePinnedShrinksOrFailsClearly) {
  fake_.fail_next("cuMemHostRegister", 1, 2);  // out of memory, once
  const auto file = open();
  const auto receipt = file.read_into(at(device, 1 << 20));
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_LT(receipt->pinned_bytes, 2U << 20);
  EXPECT_EQ(device_chars(device, 1 << 20),
            std::vector<char>(bytes.begin(), bytes.begin() + (1 << 20)));
}

TEST_F(GpuFile, E9_AFailedAttemptLeavesTheBudgetToItsRetry) {
  fake_.write(device, bytes.data(), bytes.size());
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  for (int i = 0; i < 10; ++i) {
    folder.write("out", {});
    const auto file = std::move(File::open(folder.path("out"), "r+", {}, context)).value();
    const rlimit half{bytes.size() / 2, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &half);
    const auto failed = file.write_from(at(device, bytes.size()));
    ::setrlimit(RLIMIT_FSIZE, &before);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, EFBIG);
    EXPECT_LE(fake_.pinned_bytes(), 3U << 20);
    const auto retried = file.write_from(at(device, bytes.size()));
    ASSERT_TRUE(retried) << retried.error().message();
    EXPECT_LE(retried->pinned_bytes, 3U << 20);
    EXPECT_EQ(folder.read("out"), bytes);
  }
  context.reset();
  EXPECT_EQ(fake_.pinned_bytes(), 0U);
}

TEST_F(GpuFile, AnOwnerWhoNamesAnotherDeviceIsContradicted) {
  const auto file = open();
  auto memory = at(device, 4096);
  memory.device = 0;
  EXPECT_TRUE(file.read_into(memory));
  fake_.write(device, std::vector<char>(4096, 'x').data(), 4096);
  memory.device = 1;
  const auto receipt = file.read_into(memory);
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().kind, ErrorKind::invalid_argument);
  EXPECT_NE(receipt.error().message().find("cuda:1"), std::string::npos);
  EXPECT_NE(receipt.error().message().find("cuda:0"), std::string::npos);
  EXPECT_EQ(device_chars(device, 4096), std::vector<char>(4096, 'x'));
  std::vector<char> host(4096);
  EXPECT_FALSE(file.read_into({host.data(), host.size(), 0}));
}

TEST_F(GpuFile, NoPinnedMemoryAtAllIsAnError) {
  fake_.fail_next("cuMemHostRegister", 100, 2);
  const auto receipt = open().read_into(at(device, 1 << 20));
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().kind, ErrorKind::out_of_memory);
  fake_.heal();
  EXPECT_TRUE(open().read_into(at(device, 1 << 20)));
}

TEST_F(GpuFile, AFailingCopyFailsTheCallAndOnlyThen) {
  const auto file = open();
  fake_.fail_copies(700);
  const auto receipt = file.read_into(at(device, 1 << 20));
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().kind, ErrorKind::device);
  EXPECT_EQ(receipt.error().origin, ErrorOrigin::cuda);
  EXPECT_EQ(receipt.error().path, path);
  fake_.heal();
  fake_.lose_device(0);  // the context is broken; the next test gets another
}

TEST_F(GpuFile, C5_ManyThreadsStartAtOnce) {
  std::atomic<int> waiting{0};
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      ++waiting;
      while (waiting < 16) std::this_thread::yield();
      const auto mine = device + i * 100000;
      CallOptions options;
      options.offset = i * 77777;
      const auto file = open();
      if (file.read_into(at(mine, 100000), options) &&
          device_chars(mine, 100000) ==
              std::vector<char>(bytes.begin() + static_cast<std::ptrdiff_t>(i * 77777),
                                bytes.begin() + static_cast<std::ptrdiff_t>(i * 77777 + 100000))) {
        ++right;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right.load(), 16);
}

TEST_F(GpuFile, CancelAndCloseDrainDeviceCopies) {
  auto file = open();
  for (int i = 0; i < 10; ++i) {
    auto job = std::move(file.submit_read(at(device, bytes.size()))).value();
    job.cancel();
    static_cast<void>(job.result());
    std::vector<char> mark(bytes.size(), 'm');
    fake_.write(device, mark.data(), mark.size());
    ASSERT_EQ(device_chars(device, mark.size()), mark);
  }
  auto job = std::move(file.submit_read(at(device, bytes.size()))).value();
  EXPECT_TRUE(file.close());
  EXPECT_TRUE(job.done());
  EXPECT_EQ(device_chars(device, bytes.size()), bytes);
}

TEST_F(GpuFile, AForkedChildIsRefusedTheGpuAndReadsHostMemory) {
  const auto file = open();
  ASSERT_TRUE(file.read_into(at(device, 1 << 20)));
  tests::settle_before_fork();
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<char> host(1 << 20);
    const auto refused = file.read_into(at(device, 1 << 20));
    const bool right = !refused && refused.error().kind == ErrorKind::forked &&
                       file.read_into({host.data(), host.size()}).ok() &&
                       std::equal(host.begin(), host.end(), bytes.begin());
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(GpuFile, G1_PinnedMemoryIsFlatOverManyLoads) {
  const auto file = open();
  ASSERT_TRUE(file.read_into(at(device, 1 << 20)));
  const auto pinned = fake_.pinned_bytes();
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(file.read_into(at(device, 100000)));
  EXPECT_EQ(fake_.pinned_bytes(), pinned);
  EXPECT_LE(pinned, 3U << 20);
  EXPECT_GT(pinned, 2U << 20);
}

TEST_F(GpuFile, WarmupPinsTheRing) {
  EXPECT_EQ(fake_.pinned_bytes(), 0U);
  EXPECT_TRUE(context->warmup(0));
  EXPECT_LE(fake_.pinned_bytes(), 3U << 20);
  EXPECT_GT(fake_.pinned_bytes(), 2U << 20);
  EXPECT_FALSE(context->warmup(99));
}

TEST_F(GpuFile, EndingTheContextReleasesEverything) {
  {
    auto file = open();
    ASSERT_TRUE(file.read_into(at(device, 1 << 20)));
    ASSERT_TRUE(file.close());
  }
  context.reset();
  EXPECT_EQ(fake_.pinned_bytes(), 0U);
  EXPECT_EQ(fake_.streams(), 0U);
  EXPECT_EQ(fake_.events(), 0U);
}

}  // namespace
}  // namespace straightway
