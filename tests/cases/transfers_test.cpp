// Transfers on a bad day: interrupted, short, failing, with a file that changes meanwhile.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>

#include "tests/cases/bad_kernel.hpp"
#include "tests/temp_file.hpp"

namespace straightway {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

class Transfers : public testing::Test {
 protected:
  Transfers() : bytes(tests::pattern(8 * mib + 321)), path(folder.write("a", bytes)) {
    ContextOptions options;
    options.threads = 8;
    context = kernel.context(options);
  }
  File open(std::string_view mode = "r") {
    return std::move(File::open(path, mode, {}, context)).value();
  }
  static Memory memory_of(std::vector<char>& memory) { return {memory.data(), memory.size()}; }

  tests::TempFolder folder;
  tests::BadKernel kernel;
  std::vector<char> bytes;
  std::string path;
  std::shared_ptr<Context> context;
};

TEST_F(Transfers, A2_InterruptedAndShortReadsGiveTheSameBytes) {
  const auto file = open();
  for (const auto cache : {Cache::automatic, Cache::bypass}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      kernel.on_move = tests::storm(seed);
      for (const std::uint64_t size : {200'000UL, 5 * mib, 8 * mib + 321}) {
        std::vector<char> memory(size, 'x');
        CallOptions options;
        options.cache = cache;
        options.offset = seed % 3 == 0 ? 0 : seed * 1000;
        const auto receipt = file.read_into(memory_of(memory), options);
        ASSERT_TRUE(receipt) << receipt.error().message();
        const auto want = std::min<std::uint64_t>(size, bytes.size() - options.offset);
        ASSERT_EQ(receipt->moved_bytes, want);
        ASSERT_TRUE(std::equal(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(want),
                               bytes.begin() + static_cast<std::ptrdiff_t>(options.offset)))
            << "seed " << seed << ", " << size << " bytes";
      }
    }
  }
}

TEST_F(Transfers, A2_InterruptedAndShortWritesGiveTheSameBytes) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    kernel.on_move = tests::storm(seed);
    for (const std::uint64_t size : {200'000UL, 8 * mib + 321}) {
      auto file = std::move(File::open(folder.path("out"), "w", {}, context)).value();
      const auto receipt = file.write_from({bytes.data(), size});
      ASSERT_TRUE(receipt) << receipt.error().message();
      ASSERT_EQ(receipt->moved_bytes, size);
      ASSERT_EQ(folder.read("out"),
                std::vector<char>(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)))
          << "seed " << seed << ", " << size << " bytes";
    }
  }
}

TEST_F(Transfers, A2_TheReceiptCountsWhatWasSubmittedAgain) {
  int interrupted = 3;
  kernel.on_move = [&](tests::Attempt&) -> std::optional<std::int64_t> {
    if (interrupted-- > 0) return -EINTR;
    return std::nullopt;
  };
  std::vector<char> memory(1000);
  const auto receipt = open().read_into(memory_of(memory));
  ASSERT_TRUE(receipt);
  EXPECT_EQ(receipt->retries, 3U);
}

// A segment that never gets anywhere ends with the error, not with a loop.
TEST_F(Transfers, A2_EndlessInterruptionIsAnError) {
  kernel.on_move = [](tests::Attempt&) -> std::optional<std::int64_t> { return -EINTR; };
  std::vector<char> memory(mib);
  for (const std::uint64_t size : {std::uint64_t{100}, mib}) {
    const auto receipt = open().read_into({memory.data(), size});
    ASSERT_FALSE(receipt);
    EXPECT_EQ(receipt.error().code, EINTR);
  }
}

TEST_F(Transfers, A_WriteThatTakesNothingIsAnErrorInTheEnd) {
  kernel.on_move = [](tests::Attempt&) -> std::optional<std::int64_t> { return 0; };
  auto file = open("r+");
  for (const std::uint64_t size : {std::uint64_t{100}, mib}) {
    const auto receipt = file.write_from({bytes.data(), size});
    ASSERT_FALSE(receipt);
    EXPECT_EQ(receipt.error().kind, ErrorKind::io);
  }
}

TEST_F(Transfers, D6_AHundredShortWritesAreFinishedOrRaised) {
  auto file = open("r+");
  for (std::uint64_t i = 0; i < 100; ++i) {
    const bool stuck = i % 2 == 1;  // and takes nothing more from there on
    const std::uint64_t size = i % 4 < 2 ? 100'000 : 2 * mib;
    const auto stop = size / 2 + i;
    kernel.on_move = [&](tests::Attempt& attempt) -> std::optional<std::int64_t> {
      if (stuck && attempt.offset >= stop) return 0;
      const auto left = stuck ? stop - attempt.offset : UINT64_MAX;
      attempt.size_bytes = std::min<std::uint64_t>({attempt.size_bytes, 30'000 + i, left});
      return std::nullopt;
    };
    const auto receipt = file.write_from({bytes.data(), size});
    ASSERT_EQ(receipt.ok(), !stuck);
    if (stuck) {
      EXPECT_EQ(receipt.error().kind, ErrorKind::io);
    } else {
      EXPECT_EQ(receipt->moved_bytes, size);
    }
    EXPECT_EQ(kernel.in_flight.load(), 0);
  }
}

struct Failure {
  int code;
  ErrorKind kind;
  const char* name;
};

// EDQUOT (a disk quota) is one of section H.
TEST_F(Transfers, D4_H_AnErrorInTheMiddleFailsTheWholeCall) {
  const auto file = open("r+");
  for (const auto& [code, kind, name] :
       {Failure{EIO, ErrorKind::io, "EIO"}, Failure{ENOSPC, ErrorKind::no_space, "ENOSPC"},
        Failure{EDQUOT, ErrorKind::no_space, "EDQUOT"},
        Failure{EFBIG, ErrorKind::no_space, "EFBIG"}, Failure{ESTALE, ErrorKind::io, "ESTALE"},
        Failure{ENOMEM, ErrorKind::out_of_memory, "ENOMEM"}}) {
    for (const auto direction : {Direction::read, Direction::write}) {
      for (const std::uint64_t size : {100'000UL, 8 * mib}) {
        const std::uint64_t bad = size / 2;
        kernel.on_move = [&, code = code](tests::Attempt& attempt) -> std::optional<std::int64_t> {
          if (attempt.offset >= bad) return -code;
          attempt.size_bytes = std::min<std::size_t>(attempt.size_bytes, bad - attempt.offset);
          return std::nullopt;
        };
        auto memory = bytes;
        const auto receipt = direction == Direction::read ? file.read_into({memory.data(), size})
                                                          : file.write_from({memory.data(), size});
        ASSERT_FALSE(receipt) << name;
        const auto& error = receipt.error();
        EXPECT_EQ(error.kind, kind) << name;
        EXPECT_EQ(error.origin, ErrorOrigin::system);
        EXPECT_EQ(error.code, code);
        EXPECT_EQ(error.path, path);
        ASSERT_TRUE(error.offset);
        EXPECT_GE(*error.offset, bad);
        EXPECT_NE(error.message().find(name), std::string::npos) << error.message();
        EXPECT_NE(error.message().find(path), std::string::npos) << error.message();
        EXPECT_EQ(kernel.in_flight.load(), 0);
      }
    }
  }
  kernel.on_move = nullptr;  // and the file is as usable as before
  std::vector<char> memory(bytes.size());
  ASSERT_TRUE(file.read_into(memory_of(memory)));
  EXPECT_EQ(memory, bytes);
}

TEST_F(Transfers, D4_OneBadRangeOfManyFailsTheCall) {
  kernel.on_move = [](tests::Attempt& attempt) -> std::optional<std::int64_t> {
    if (attempt.offset == 3 * mib) return -EIO;
    return std::nullopt;
  };
  std::vector<char> memory(8 * mib);
  std::vector<RangeRequest> ranges;
  for (std::uint64_t i = 0; i < 8; ++i) ranges.push_back({i * mib, mib, {&memory[i * mib], mib}});
  const auto receipt = open().read_ranges(ranges);
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().code, EIO);
  EXPECT_EQ(receipt.error().offset, 3 * mib);
}

TEST_F(Transfers, D4_OneBadFileOfManyFailsTheCall) {
  std::atomic<int> reads{0};
  kernel.on_move = [&](tests::Attempt&) -> std::optional<std::int64_t> {
    if (++reads == 5) return -EIO;
    return std::nullopt;
  };
  std::vector<char> memory(8 * mib);
  std::vector<FileRequest> requests;
  for (std::uint64_t i = 0; i < 8; ++i) {
    requests.push_back({path, i * mib, {}, {&memory[i * mib], mib}});
  }
  const auto receipt = read_many(requests, {}, context);
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().code, EIO);
  EXPECT_EQ(receipt.error().path, path);
  EXPECT_EQ(kernel.in_flight.load(), 0);
}

TEST_F(Transfers, SyncFailuresAreErrorsAndInterruptionsAreNot) {
  auto file = open("r+");
  for (const std::uint64_t size : {std::uint64_t{100}, 2 * mib}) {
    for (const auto sync : {Sync::data, Sync::full}) {
      CallOptions options;
      options.sync = sync;
      kernel.on_sync = [] { return -EIO; };
      const auto failed = file.write_from({bytes.data(), size}, options);
      ASSERT_FALSE(failed);
      EXPECT_EQ(failed.error().code, EIO);
      EXPECT_NE(failed.error().message().find("durable"), std::string::npos);
      int interrupted = 2;
      kernel.on_sync = [&]() -> std::optional<int> {
        if (interrupted-- > 0) return -EINTR;
        return std::nullopt;
      };
      EXPECT_TRUE(file.write_from({bytes.data(), size}, options));
    }
  }
}

TEST_F(Transfers, AnInterruptedOpenIsTriedAgain) {
  int interrupted = 2;
  kernel.on_open = [&](const std::string&, int) -> std::optional<int> {
    if (interrupted-- > 0) return -EINTR;
    return std::nullopt;
  };
  EXPECT_TRUE(File::open(path, "r", {}, context));
}

// Holds calls back until they are let go.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait_for(int waiting) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= waiting; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

std::ptrdiff_t threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST_F(Transfers, ManySyncedWritesWaitOnOneThread) {
  Gate gate;
  kernel.on_sync = [&]() -> std::optional<int> {
    gate.pass();
    return std::nullopt;
  };
  auto file = std::move(File::open(folder.path("out"), "w", {}, context)).value();
  CallOptions options;
  ASSERT_TRUE(file.write_from(memory_of(bytes), options));
  const auto before = threads();
  options.sync = Sync::full;
  std::vector<Job> jobs;
  for (int i = 0; i < 12; ++i) {
    jobs.push_back(std::move(file.submit_write(memory_of(bytes), options)).value());
  }
  gate.wait_for(1);
  ASSERT_TRUE(file.write_from(memory_of(bytes)));  // and the others are not held up
  // The workers that were not there yet, seven at most, and the one that syncs; not one for each of
  // the twelve writes.
  EXPECT_LE(threads(), before + 8);
  EXPECT_FALSE(jobs.front().done());
  context.reset();
  gate.open();
  EXPECT_TRUE(file.close());  // waits for all of them
  for (const auto& job : jobs) EXPECT_TRUE(job.done() && job.result());
}

TEST_F(Transfers, ACallbackOfASyncedWriteMustNotWait) {
  auto file = std::move(File::open(folder.path("out"), "w", {}, context)).value();
  CallOptions options;
  options.sync = Sync::data;
  std::promise<bool> refused;
  file.submit_write(memory_of(bytes), options).value().on_done([&] {
    const auto nested = file.write_from(memory_of(bytes), options);
    refused.set_value(!nested && nested.error().kind == ErrorKind::invalid_argument);
  });
  EXPECT_TRUE(refused.get_future().get());
}

TEST_F(Transfers, C7_NothingReturnsBeforeAllPartsAreIn) {
  Gate gate;
  kernel.on_move = [&](tests::Attempt& attempt) -> std::optional<std::int64_t> {
    if (attempt.offset == 0) {
      gate.wait_for(1);  // fails while others are under way
      return -EIO;
    }
    gate.pass();
    return std::nullopt;
  };
  const auto file = open();
  std::vector<char> memory(8 * mib, 'x');
  auto job = std::move(file.submit_read(memory_of(memory))).value();
  gate.wait_for(1);
  EXPECT_EQ(job.result(50ms).error().kind, ErrorKind::deadline_exceeded);
  EXPECT_FALSE(job.done());
  EXPECT_GT(kernel.in_flight.load(), 0);
  gate.open();
  const auto receipt = job.result();
  EXPECT_EQ(kernel.in_flight.load(), 0);
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().code, EIO);
  EXPECT_EQ(receipt.error().offset, 0U);
  std::fill(memory.begin(), memory.end(), 'y');  // nobody writes here any more
  EXPECT_EQ(memory, std::vector<char>(8 * mib, 'y'));
}

TEST_F(Transfers, C7_CancelAndDeadlineWaitForWhatIsUnderWay) {
  for (const bool by_deadline : {false, true}) {
    Gate gate;
    kernel.on_move = [&](tests::Attempt&) -> std::optional<std::int64_t> {
      gate.pass();
      return std::nullopt;
    };
    const auto file = open();
    std::vector<char> memory(8 * mib);
    CallOptions options;
    if (by_deadline) options.deadline = 200ms;
    auto job = std::move(file.submit_read(memory_of(memory), options)).value();
    while (kernel.in_flight.load() == 0 && !job.done()) std::this_thread::yield();
    if (job.done()) continue;  // so slow a machine that the deadline passed before it began
    if (!by_deadline) {
      EXPECT_TRUE(job.cancel());
    }
    EXPECT_EQ(job.result(300ms).error().kind, ErrorKind::deadline_exceeded);
    EXPECT_FALSE(job.done());
    gate.open();
    const auto receipt = job.result();
    EXPECT_EQ(kernel.in_flight.load(), 0);
    ASSERT_FALSE(receipt);
    EXPECT_EQ(receipt.error().kind,
              by_deadline ? ErrorKind::deadline_exceeded : ErrorKind::cancelled);
  }
}

TEST_F(Transfers, A8_AFileThatIsTruncatedMeanwhileEndsThere) {
  for (const auto cache : {Cache::automatic, Cache::bypass}) {
    folder.write("a", bytes);
    const auto file = open();
    std::once_flag cut;  // the others wait: none reads what is about to go
    kernel.on_move = [&](tests::Attempt&) -> std::optional<std::int64_t> {
      std::call_once(cut, [&] { EXPECT_EQ(::truncate(path.c_str(), 3 * mib + 17), 0); });
      return std::nullopt;
    };
    std::vector<char> memory(bytes.size(), 'x');
    CallOptions options;
    options.cache = cache;
    if (cache == Cache::bypass) {
      EXPECT_EQ(::truncate(path.c_str(), 3 * mib + 17), 0);
    }
    const auto receipt = file.read_into(memory_of(memory), options);
    ASSERT_TRUE(receipt) << receipt.error().message();
    EXPECT_TRUE(receipt->ended_early);
    EXPECT_EQ(receipt->end_of_file, 3 * mib + 17);
    EXPECT_EQ(receipt->moved_bytes, 3 * mib + 17);
    EXPECT_TRUE(std::equal(memory.begin(), memory.begin() + 3 * mib + 17, bytes.begin()));
    options.exact = true;
    const auto exact = file.read_into(memory_of(memory), options);
    ASSERT_FALSE(exact);
    EXPECT_EQ(exact.error().kind, ErrorKind::short_transfer);
    EXPECT_NE(exact.error().message().find(std::to_string(3 * mib + 17)), std::string::npos);
  }
}

TEST_F(Transfers, D15_AFileThatIsEmptiedMeanwhileIsShortNotASignal) {
  const auto file = open();
  std::atomic<int> reads{0};
  kernel.on_move = [&](tests::Attempt&) -> std::optional<std::int64_t> {
    if (++reads == 3) {
      EXPECT_EQ(::truncate(path.c_str(), 0), 0);
    }
    return std::nullopt;
  };
  std::vector<char> memory(bytes.size());
  CallOptions options;
  options.exact = true;
  const auto receipt = file.read_into(memory_of(memory), options);
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().kind, ErrorKind::short_transfer);
}

TEST_F(Transfers, AFileThatIsReplacedMeanwhileStaysTheOldOne) {
  const auto other = tests::pattern(bytes.size(), 77);
  for (const auto cache : {Cache::automatic, Cache::bypass}) {
    folder.write("a", bytes);
    const auto file = open();
    folder.write("b", other);
    std::filesystem::rename(folder.path("b"), path);
    std::vector<char> memory(bytes.size());
    CallOptions options;
    options.cache = cache;
    const auto receipt = file.read_into(memory_of(memory), options);
    ASSERT_TRUE(receipt) << receipt.error().message();
    EXPECT_EQ(memory, bytes);
    EXPECT_EQ(*file.size(), bytes.size());
  }
}

TEST_F(Transfers, B3_EightThreadsExtendOneFile) {
  const auto file = std::move(File::open(folder.path("out"), "w", {}, context)).value();
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (std::uint64_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t piece = i; piece < 64; piece += 8) {
        CallOptions options;
        options.offset = piece * 131072;
        options.sync = piece % 5 == 0 ? Sync::data : Sync::none;
        const auto receipt = file.write_from({bytes.data() + options.offset, 131072}, options);
        if (!receipt || receipt->moved_bytes != 131072) ++failed;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 0);
  EXPECT_EQ(folder.read("out"), std::vector<char>(bytes.begin(), bytes.begin() + 8 * mib));
}

// As one call in many segments, and through O_DIRECT, from a length that is no whole block.
TEST_F(Transfers, B3_ExtendingWritesLandWhereTheyBelong) {
  for (const auto cache : {Cache::automatic, Cache::bypass}) {
    folder.write("out", std::vector<char>(777, 'o'));
    const auto file = std::move(File::open(folder.path("out"), "r+", {}, context)).value();
    CallOptions options;
    options.cache = cache;
    options.offset = 4096 - 321;
    ASSERT_TRUE(file.write_from({bytes.data(), bytes.size()}, options));
    std::vector<char> want(options.offset, '\0');
    std::fill_n(want.begin(), 777, 'o');
    want.insert(want.end(), bytes.begin(), bytes.end());
    EXPECT_EQ(folder.read("out"), want);
  }
}

TEST_F(Transfers, H_OverlappingWritesOfTwoThreadsLeaveOneOrTheOther) {
  const auto file = open("r+");
  const std::vector<char> ones(4 * mib, '1');
  const std::vector<char> twos(4 * mib, '2');
  const auto write = [&](const std::vector<char>& from, std::uint64_t offset) {
    CallOptions options;
    options.offset = offset;
    EXPECT_TRUE(file.write_from({const_cast<char*>(from.data()), from.size()}, options));
  };
  for (int i = 0; i < 5; ++i) {
    std::thread first([&] { write(ones, 0); });
    std::thread second([&] { write(twos, 2 * mib); });
    first.join();
    second.join();
    const auto got = folder.read("a");
    EXPECT_TRUE(std::all_of(got.begin(), got.begin() + 2 * mib, [](char c) { return c == '1'; }));
    EXPECT_TRUE(std::all_of(got.begin() + 2 * mib, got.begin() + 4 * mib,
                            [](char c) { return c == '1' || c == '2'; }));
    EXPECT_TRUE(
        std::all_of(got.begin() + 4 * mib, got.begin() + 6 * mib, [](char c) { return c == '2'; }));
    EXPECT_TRUE(std::equal(got.begin() + 6 * mib, got.end(), bytes.begin() + 6 * mib, bytes.end()));
  }
}

TEST_F(Transfers, H_AnotherContextMayComeAndGoMeanwhile) {
  const auto file = open();
  std::vector<char> memory(bytes.size());
  for (std::uint64_t threads = 1; threads <= 8; ++threads) {
    auto job = std::move(file.submit_read(memory_of(memory))).value();
    ContextOptions options;
    options.threads = threads;
    auto other = kernel.context(options);
    auto same = std::move(File::open(path, "r", {}, other)).value();
    std::vector<char> theirs(bytes.size());
    const auto receipt = same.read_into(memory_of(theirs));
    ASSERT_TRUE(receipt);
    EXPECT_LE(receipt->threads, threads);
    EXPECT_EQ(theirs, bytes);
    ASSERT_TRUE(job.result());
    EXPECT_EQ(memory, bytes);
  }
}

}  // namespace
}  // namespace straightway
