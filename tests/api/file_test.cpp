#include "straightway/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "tests/cases/in_child.hpp"
#include "tests/temp_file.hpp"

namespace straightway {
namespace {

class FileTest : public testing::Test {
 protected:
  FileTest() : bytes(tests::pattern((3 << 20) + 777)), path(folder.write("a", bytes)) {}

  File open(std::string_view mode = "r", OpenOptions options = {}) {
    return std::move(File::open(path, mode, options)).value();
  }
  // Reads, and compares with what the file holds there; nothing behind it may change.
  void expect_read(const File& file, std::uint64_t offset, std::uint64_t size, std::size_t shift,
                   CallOptions options = {}) {
    std::vector<char> memory(size + 8192, 'x');
    auto* at = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 4095) &
                                       ~std::uintptr_t{4095}) +
               shift;
    options.offset = offset;
    const auto receipt = file.read_into({at, size}, options);
    ASSERT_TRUE(receipt) << receipt.error().message();
    const auto want = offset >= bytes.size() ? 0 : std::min(size, bytes.size() - offset);
    EXPECT_EQ(receipt->moved_bytes, want);
    EXPECT_EQ(receipt->wanted_bytes, size);
    EXPECT_EQ(std::memcmp(at, bytes.data() + (want ? offset : 0), want), 0);
    EXPECT_EQ(at[want], 'x');
    EXPECT_EQ(receipt->ended_early, want < size);
    if (want < size) {
      EXPECT_EQ(receipt->end_of_file, bytes.size());
    }
    std::uint64_t sum = 0;
    for (const auto& share : receipt->routes) {
      sum += share.bytes;
      EXPECT_EQ(share.bytes > 0, share.segments > 0);
      EXPECT_EQ(share.bytes > 0, share.evidence.kind != EvidenceKind::none);
    }
    EXPECT_EQ(sum, want);
    EXPECT_GE(receipt->times.done_ns, receipt->times.queued_ns);
  }

  tests::TempFolder folder;
  std::vector<char> bytes;
  std::string path;
};

TEST_F(FileTest, ReadsAnyOffsetSizeAndAlignment) {
  const auto file = open();
  for (const auto policy : {Policy::automatic, Policy::staged}) {
    CallOptions options;
    options.policy = policy;
    for (const std::uint64_t offset : {0UL, 1UL, 4096UL, 4097UL, 1UL << 20, bytes.size() - 1,
                                       bytes.size(), bytes.size() + 5000}) {
      for (const std::uint64_t size : {0UL, 1UL, 100UL, 4096UL, 300000UL, 2UL << 20, 5UL << 20}) {
        expect_read(file, offset, size, offset % 7, options);
      }
    }
  }
}

TEST_F(FileTest, A1_DirectReadsGiveTheSameBytes) {
  const auto file = open();
  if (file.facts()->direct_offset_align_bytes == 0) GTEST_SKIP() << "no O_DIRECT here";
  CallOptions options;
  options.policy = Policy::direct;
  expect_read(file, 4096, 4096 + 100, 0, options);
  expect_read(file, 0, bytes.size(), 0, options);
  expect_read(file, 4097, 2 << 20, 1, options);
  expect_read(file, bytes.size() - 100, 1 << 20, (bytes.size() - 100) % 4096, options);
}

TEST_F(FileTest, A1_DirectWritesLeaveNeighboursAlone) {
  const auto file = open("r+");
  if (file.facts()->direct_offset_align_bytes == 0) GTEST_SKIP() << "no O_DIRECT here";
  auto fresh = tests::pattern(4096 + 8192, 9);
  auto* at = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(fresh.data()) + 4095) &
                                     ~std::uintptr_t{4095});
  CallOptions options;
  options.policy = Policy::direct;
  options.offset = 4096;
  const auto receipt = file.write_from({at, 4196}, options);
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_EQ(receipt->routes[index(Route::direct_host)].bytes, 4096U);
  EXPECT_EQ(receipt->routes[index(Route::buffered)].bytes, 100U);
  auto want = bytes;
  std::memcpy(want.data() + 4096, at, 4196);
  EXPECT_EQ(folder.read("a"), want);
}

TEST_F(FileTest, A4_ZeroBytesIsASuccessThatIssuesNothing) {
  const auto file = open();
  for (const std::uint64_t offset : {std::uint64_t{0}, bytes.size(), bytes.size() + 100}) {
    CallOptions options;
    options.offset = offset;
    const auto receipt = file.read_into({nullptr, 0}, options);
    ASSERT_TRUE(receipt);
    EXPECT_EQ(receipt->moved_bytes, 0U);
    EXPECT_FALSE(receipt->ended_early);
    for (const auto& share : receipt->routes) EXPECT_EQ(share.segments, 0U);
  }
}

TEST_F(FileTest, A5_WritingNothingLeavesTheFile) {
  const auto file = open("r+");
  EXPECT_TRUE(file.write_from({nullptr, 0}));
  EXPECT_EQ(*file.size(), bytes.size());
}

TEST_F(FileTest, A6_AClosedFileIsAnErrorEvenForZeroBytes) {
  auto file = open();
  EXPECT_TRUE(file.close());
  EXPECT_TRUE(file.close());
  EXPECT_TRUE(file.closed());
  EXPECT_EQ(file.read_into({nullptr, 0}).error().kind, ErrorKind::closed);
  EXPECT_EQ(file.submit_read({nullptr, 0}).error().kind, ErrorKind::closed);
  EXPECT_EQ(file.explain(Direction::read, {nullptr, 0}).error().kind, ErrorKind::closed);
  EXPECT_EQ(file.size().error().kind, ErrorKind::closed);
  EXPECT_EQ(File().read_into({nullptr, 0}).error().kind, ErrorKind::closed);
}

TEST_F(FileTest, A8_A9_OffsetsBeyond2And4GiB) {
  const auto sparse = folder.path("sparse");
  {
    auto file = std::move(File::open(sparse, "w")).value();
    for (const std::uint64_t at : {(1UL << 31) + 1, (1UL << 32) + 1}) {
      CallOptions options;
      options.offset = at;
      char mark[16] = "mark";
      mark[5] = static_cast<char>(at >> 28);
      ASSERT_TRUE(file.write_from({mark, 16}, options));
    }
  }
  ASSERT_EQ(::truncate(sparse.c_str(), 5L << 30), 0);
  const auto file = std::move(File::open(sparse)).value();
  EXPECT_EQ(*file.size(), 5UL << 30);
  for (const std::uint64_t at : {(1UL << 31) + 1, (1UL << 32) + 1}) {
    CallOptions options;
    options.offset = at;
    char got[16] = {};
    ASSERT_TRUE(file.read_into({got, 16}, options));
    EXPECT_STREQ(got, "mark");
    EXPECT_EQ(got[5], static_cast<char>(at >> 28));
  }
}

TEST_F(FileTest, ExactMakesAShortReadAnError) {
  const auto file = open();
  std::vector<char> memory(bytes.size() + 1);
  CallOptions options;
  options.exact = true;
  const auto receipt = file.read_into({memory.data(), memory.size()}, options);
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().kind, ErrorKind::short_transfer);
  EXPECT_NE(receipt.error().message().find("end of file at " + std::to_string(bytes.size())),
            std::string::npos);
  EXPECT_TRUE(file.read_into({memory.data(), bytes.size()}, options));
}

TEST_F(FileTest, A16_A19_BadArgumentsFailBeforeAnyIo) {
  const auto file = open("r+");
  char byte = 0;
  const auto kind = [&](std::uint64_t offset, std::uint64_t size, Memory memory) {
    CallOptions options;
    options.offset = offset;
    options.size_bytes = size;
    const auto read = file.read_into(memory, options);
    const auto written = file.write_from(memory, options);
    const auto job = file.submit_read(memory, options);
    EXPECT_FALSE(read || written || job);
    EXPECT_EQ(read.error().kind, written.error().kind);
    EXPECT_EQ(read.error().kind, job.error().kind);
    return read.error().kind;
  };
  EXPECT_EQ(kind(0, 2, {&byte, 1}), ErrorKind::invalid_argument);
  EXPECT_EQ(kind(0, UINT64_MAX, {&byte, 1}), ErrorKind::invalid_argument);
  EXPECT_EQ(kind(UINT64_MAX - 4095, 1, {&byte, 1}), ErrorKind::invalid_argument);
  EXPECT_EQ(kind(INT64_MAX, 1, {&byte, 1}), ErrorKind::invalid_argument);
  EXPECT_EQ(kind(0, 1, {nullptr, 1}), ErrorKind::invalid_argument);
  EXPECT_EQ(kind(0, INT64_MAX, {&byte, UINT64_MAX}), ErrorKind::invalid_argument);
  EXPECT_EQ(folder.read("a"), bytes);
}

TEST_F(FileTest, AFreedPointerIsAnErrorAndNoCrash) {
  const auto file = open();
  auto* gone = reinterpret_cast<void*>(0x10000);
  const auto receipt = file.read_into({gone, 4096});
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().code, EFAULT);
  EXPECT_EQ(file.read_into({gone, 2 << 20}).error().code, EFAULT);
}

TEST_F(FileTest, TheModeIsCheckedBeforeAnyIo) {
  char byte = 0;
  EXPECT_EQ(open("r").write_from({&byte, 1}).error().kind, ErrorKind::permission);
  const auto file = std::move(File::open(folder.path("w"), "w")).value();
  EXPECT_EQ(file.read_into({&byte, 1}).error().kind, ErrorKind::permission);
}

TEST_F(FileTest, ManyRangesMoveInOneCall) {
  const auto file = open("r+");
  std::vector<char> memory(bytes.size(), 0);
  std::vector<RangeRequest> ranges;
  for (std::uint64_t at = 0; at < bytes.size(); at += 10007) {
    const auto size = std::min<std::uint64_t>(10007, bytes.size() - at);
    ranges.push_back({at, size, {memory.data() + at, size}});
  }
  const auto receipt = file.read_ranges(ranges);
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_EQ(memory, bytes);
  EXPECT_EQ(receipt->moved_bytes, bytes.size());
  ASSERT_TRUE(receipt->ranges);
  EXPECT_EQ(receipt->ranges->offset.size(), ranges.size());
  std::reverse(memory.begin(), memory.end());
  ASSERT_TRUE(file.write_ranges(ranges));
  EXPECT_EQ(folder.read("a"), memory);
  EXPECT_EQ(file.read_ranges({})->moved_bytes, 0U);
  const auto nothing = file.read_ranges({{0, 0, {}}, {bytes.size() + 5, 0, {}}});
  ASSERT_TRUE(nothing);
  ASSERT_TRUE(nothing->ranges);
  EXPECT_EQ(nothing->ranges->moved_bytes, (std::vector<std::uint64_t>{0, 0}));
}

TEST_F(FileTest, B7_ManyFilesUnderASmallLimitOfOpenFiles) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP()
      << "UBSan looks at memory through a pipe, and takes a lack of descriptors for faults";
#endif
  std::vector<FileRequest> requests;
  std::vector<std::vector<char>> memory(300, std::vector<char>(100));
  for (int i = 0; i < 300; ++i) {
    const auto name = "f" + std::to_string(i);
    folder.write(name, tests::pattern(100, static_cast<std::uint64_t>(i) + 10));
    requests.push_back(
        {folder.path(name), 0, {}, {memory[static_cast<std::size_t>(i)].data(), 100}});
  }
  static_cast<void>(read_many({requests[0]}));  // start what stays open
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit small{60, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &small);
  const auto receipt = read_many(requests);
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_EQ(receipt->moved_bytes, 30000U);
  ASSERT_TRUE(receipt->ranges);
  EXPECT_EQ(receipt->ranges->moved_bytes, std::vector<std::uint64_t>(300, 100));
  for (std::size_t i = 0; i < 300; ++i) EXPECT_EQ(memory[i], tests::pattern(100, i + 10));
  requests[200].path = folder.path("missing");
  EXPECT_EQ(read_many(requests).error().kind, ErrorKind::not_found);
}

TEST_F(FileTest, TheDeadlineOfReadManyIsThatOfTheWholeCall) {
  folder.write("f", tests::pattern(100));
  std::vector<char> memory(200 * 100);
  std::vector<FileRequest> requests;
  for (std::size_t i = 0; i < 200; ++i) {
    requests.push_back({folder.path("f"), 0, {}, {&memory[i * 100], 100}});
  }
  CallOptions options;
  options.deadline = std::chrono::milliseconds(300);
  int batches = 0;
  const auto receipt = read_many(requests, options, nullptr, [&] {
    if (++batches == 2) std::this_thread::sleep_for(std::chrono::milliseconds(310));
    return true;
  });
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().kind, ErrorKind::deadline_exceeded) << receipt.error().message();
}

TEST_F(FileTest, AWriteFromForeignMemoryLeavesTheFileAlone) {
  const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  auto* const pages = static_cast<char*>(
      ::mmap(nullptr, 4 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(pages), MAP_FAILED);
  ASSERT_EQ(::mprotect(pages + 3 * page_bytes, page_bytes, PROT_NONE), 0);
  folder.write("out", {});
  const auto file = std::move(File::open(folder.path("out"), "r+")).value();
  for (const auto cache : {Cache::automatic, Cache::bypass}) {
    for (const auto offset : {0UL, 100UL, 4096UL}) {
      CallOptions options;
      options.cache = cache;
      options.offset = offset;
      // All of it foreign, and only its last page.
      for (auto* const from : {pages + 3 * page_bytes, pages}) {
        const auto receipt = file.write_from({from, 4 * page_bytes}, options);
        ASSERT_FALSE(receipt);
        EXPECT_EQ(receipt.error().kind, ErrorKind::invalid_argument);
        EXPECT_EQ(receipt.error().code, EFAULT);
        EXPECT_EQ(folder.read("out").size(), 0U);
      }
      EXPECT_FALSE(file.submit_write({pages + 3 * page_bytes, 64U << 20}, options));
      EXPECT_EQ(folder.read("out").size(), 0U);
    }
  }
  ::munmap(pages, 4 * page_bytes);
}

TEST_F(FileTest, A13_ALimitOfTheFileSizeIsAnErrorAtTheWrite) {
  tests::settle_before_fork();
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto context = std::move(Context::create()).value();
    auto file = std::move(File::open(folder.path("big"), "w", {}, context)).value();
    const auto receipt = file.write_from({bytes.data(), bytes.size()});
    ::_exit(!receipt && receipt.error().code == EFBIG && receipt.error().kind == ErrorKind::no_space
                ? 0
                : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(FileTest, ManyThreadsShareAFile) {
  const auto file = open();
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (std::size_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (std::size_t size : {std::size_t{1000}, std::size_t{700000}}) {
        std::vector<char> memory(size);
        CallOptions options;
        options.offset = i * 300001;
        const auto receipt = file.read_into({memory.data(), size}, options);
        if (receipt &&
            std::memcmp(memory.data(), bytes.data() + options.offset, receipt->moved_bytes) == 0) {
          ++right;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right.load(), 16);
}

TEST_F(FileTest, D15_AFileThatShrinksMeanwhileIsShortAndNoCrash) {
  const auto file = open();
  std::vector<char> memory(bytes.size());
  auto job = file.submit_read({memory.data(), memory.size()});
  ASSERT_EQ(::truncate(path.c_str(), 1000), 0);
  const auto receipt = job->result();
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_LE(receipt->moved_bytes, bytes.size());
  const auto again = file.read_into({memory.data(), memory.size()});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->moved_bytes, 1000U);
  EXPECT_EQ(again->end_of_file, 1000U);
}

TEST_F(FileTest, DurableWritesAnswerOnceSynced) {
  const auto file = open("r+");
  for (const auto sync : {Sync::data, Sync::full}) {
    CallOptions options;
    options.sync = sync;
    EXPECT_TRUE(file.write_from({bytes.data(), 1000}, options));
    EXPECT_TRUE(file.write_from({bytes.data(), bytes.size()}, options));
    EXPECT_TRUE(file.submit_write({bytes.data(), bytes.size()}, options)->result());
  }
}

TEST_F(FileTest, ExplainMovesNothingAndSaysTheRoute) {
  const auto file = open();
  std::vector<char> memory(2 << 20, 'x');
  const auto plan = file.explain(Direction::read, {memory.data(), memory.size()});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->runs[0].route, Route::buffered);
  EXPECT_EQ(memory, std::vector<char>(2 << 20, 'x'));
  const auto ahead = file.explain(Direction::read, SpaceKind::host, -1, 1 << 20);
  ASSERT_TRUE(ahead);
  EXPECT_EQ(ahead->request.file.size_bytes, 1U << 20);
}

TEST_F(FileTest, OptionsOfTheCallWinOverTheFiles) {
  OpenOptions options;
  options.policy = Policy::direct;
  const auto file = open("r", options);
  char bytes_read[100];
  const auto refused = file.read_into({bytes_read, 100});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::route_refused);
  CallOptions call;
  call.policy = Policy::automatic;
  const auto receipt = file.read_into({bytes_read, 100}, call);
  ASSERT_TRUE(receipt);
  EXPECT_EQ(receipt->settings->policy.origin, Origin::call);
}

}  // namespace
}  // namespace straightway
