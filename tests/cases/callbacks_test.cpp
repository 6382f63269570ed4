// Callbacks that do what they should not: wait, close, throw, drop the last reference.

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <thread>

#include "tests/cases/bad_kernel.hpp"
#include "tests/temp_file.hpp"

namespace straightway {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

class Callbacks : public testing::Test {
 protected:
  Callbacks() : bytes(tests::pattern(8 * mib)), memory(bytes.size()) {
    path = folder.write("a", bytes);
    ContextOptions options;
    options.threads = 4;  // one may be held, and the others go on
    context = kernel.context(options);
  }
  File open() { return std::move(File::open(path, "r", {}, context)).value(); }
  Memory all() { return {memory.data(), memory.size()}; }
  // Holds every read at or behind `offset` until release().
  void hold_from(std::uint64_t offset) {
    kernel.on_move = [this, offset](tests::Attempt& attempt) -> std::optional<std::int64_t> {
      while (attempt.offset >= offset && !released.load()) std::this_thread::yield();
      return std::nullopt;
    };
  }

  tests::TempFolder folder;
  tests::BadKernel kernel;
  std::vector<char> bytes;
  std::vector<char> memory;
  std::string path;
  std::atomic<bool> released{false};
  std::shared_ptr<Context> context;
};

// The other job needs the thread that the callback runs on.
TEST_F(Callbacks, CloseWithAnotherJobUnderWayDoesNotHang) {
  hold_from(4 * mib);
  auto file = std::make_shared<File>(open());
  const int fd = file->descriptor();
  std::vector<char> other(65536);
  CallOptions behind;
  behind.offset = 4 * mib;
  auto slow = std::move(file->submit_read({other.data(), other.size()}, behind)).value();
  auto quick = std::move(file->submit_read({memory.data(), mib})).value();
  std::promise<bool> closed;
  quick.on_done([&] {
    static_cast<void>(file->close());
    closed.set_value(file->closed());
  });
  EXPECT_TRUE(closed.get_future().get());
  EXPECT_FALSE(file->read_into(all()));
  EXPECT_EQ(file->descriptor(), -1);
  const auto link = "/proc/self/fd/" + std::to_string(fd);
  EXPECT_TRUE(std::filesystem::exists(link));  // the job under way has it
  released = true;
  ASSERT_TRUE(slow.result());
  EXPECT_TRUE(std::equal(other.begin(), other.end(), bytes.begin() + 4 * mib));
  EXPECT_TRUE(file->close());
  EXPECT_FALSE(std::filesystem::exists(link) && std::filesystem::read_symlink(link) == path);
}

TEST_F(Callbacks, WaitingInACallbackIsAnErrorNotAHang) {
  hold_from(4 * mib);
  const auto file = open();
  std::vector<char> other(65536);
  CallOptions behind;
  behind.offset = 4 * mib;
  auto slow = std::move(file.submit_read({other.data(), other.size()}, behind)).value();
  auto quick = std::move(file.submit_read({memory.data(), mib})).value();
  std::promise<std::vector<Error>> told;
  quick.on_done([&] {
    std::vector<Error> errors;
    if (const auto waited = slow.result(); !waited) errors.push_back(waited.error());
    if (const auto read = file.read_into(all()); !read) errors.push_back(read.error());
    if (const auto warm = context->warmup(0); !warm) errors.push_back(warm.error());
    told.set_value(errors);
  });
  const auto errors = told.get_future().get();
  ASSERT_EQ(errors.size(), 3U);
  for (const auto& error : errors) {
    EXPECT_EQ(error.kind, ErrorKind::invalid_argument);
    EXPECT_EQ(error.code, EDEADLK);
    EXPECT_NE(error.message().find("callback"), std::string::npos);
  }
  released = true;
  EXPECT_TRUE(slow.result());
}

TEST_F(Callbacks, WhatTheyThrowIsDropped) {
  ContextOptions options;
  int warned = 0;
  options.on_warning = [&](std::string_view) {
    ++warned;
    throw std::runtime_error("from the sink");
  };
  kernel.on_open = [](const std::string&, int flags) -> std::optional<int> {
    if ((flags & O_DIRECT) != 0) return -EINVAL;
    return std::nullopt;
  };
  const auto throwing = kernel.context(options);
  const auto file = std::move(File::open(path, "r", {}, throwing)).value();
  CallOptions call;
  call.on_progress = [](const Progress&) { throw 1; };
  std::promise<void> reached;
  auto job = std::move(file.submit_read(all(), call)).value();
  job.on_done([] { throw std::runtime_error("from the callback"); });
  job.on_done([&] { reached.set_value(); });
  reached.get_future().wait();
  EXPECT_TRUE(job.result());
  EXPECT_EQ(memory, bytes);
  call = {};
  call.cache = Cache::bypass;
  std::vector<char> storage(mib + 4096);
  const auto at = (reinterpret_cast<std::uintptr_t>(storage.data()) + 4095) & ~std::uintptr_t{4095};
  EXPECT_TRUE(file.read_into({reinterpret_cast<void*>(at), mib}, call));
  EXPECT_EQ(warned, file.facts()->direct_offset_align_bytes > 0 ? 1 : 0);
}

TEST_F(Callbacks, TheLastReferencesMayGoInOne) {
  for (int i = 0; i < 50; ++i) {
    auto own = kernel.context();
    auto file = std::make_shared<File>(std::move(File::open(path, "r", {}, own)).value());
    std::promise<void> gone;
    {
      auto job = std::make_shared<Job>(std::move(file->submit_read(all())).value());
      auto release = [file, own, job, &gone]() mutable {
        job.reset();
        file.reset();
        own.reset();
        gone.set_value();
      };
      own.reset();
      file.reset();
      job->on_done(std::move(release));
    }
    gone.get_future().wait();
    ASSERT_EQ(memory, bytes);
  }
}

// Nobody keeps anything: the transfer itself holds the engine, and the pump ends by itself.
TEST_F(Callbacks, EverythingMayBeDroppedMeanwhile) {
  for (int i = 0; i < 50; ++i) {
    auto owner = std::make_shared<std::vector<char>>(bytes.size());
    std::promise<void> done;
    {
      auto own = kernel.context();
      auto file = std::move(File::open(path, "r", {}, own)).value();
      auto job = std::move(file.submit_read({owner->data(), owner->size()}, {}, owner)).value();
      job.on_done([&] { done.set_value(); });
      own.reset();
      static_cast<void>(file.close());
    }
    done.get_future().wait();
    ASSERT_EQ(*owner, bytes);
  }
}

TEST_F(Callbacks, CloseAndUseFromManyThreadsAtOnce) {
  for (int i = 0; i < 30; ++i) {
    auto file = open();
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&, t] {
        std::vector<char> own(mib);
        for (int k = 0; k < 5; ++k) {
          const auto receipt = file.read_into({own.data(), t % 2 == 0 ? mib : 1000});
          EXPECT_TRUE(receipt || receipt.error().kind == ErrorKind::closed);
          static_cast<void>(file.descriptor());
          static_cast<void>(file.size());
        }
      });
    }
    threads.emplace_back([&] { static_cast<void>(file.close()); });
    threads.emplace_back([&] { static_cast<void>(file.close()); });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(file.descriptor(), -1);
  }
}

TEST_F(Callbacks, ATimeoutOfYearsWaits) {
  const auto file = open();
  auto job = std::move(file.submit_read(all())).value();
  EXPECT_TRUE(job.result(std::chrono::nanoseconds::max()));
  EXPECT_EQ(memory, bytes);
}

TEST_F(Callbacks, ANegativeTimeoutOnlyLooks) {
  hold_from(0);
  const auto file = open();
  auto job = std::move(file.submit_read(all())).value();
  EXPECT_EQ(job.result(std::chrono::nanoseconds::min()).error().kind, ErrorKind::deadline_exceeded);
  released = true;
  EXPECT_TRUE(job.result());
}

TEST_F(Callbacks, A16_ExplainChecksWhatDoesNotExistYet) {
  const auto file = open();
  for (const auto offset : {UINT64_MAX, std::uint64_t{1} << 63}) {
    CallOptions options;
    options.offset = offset;
    const auto plan = file.explain(Direction::read, SpaceKind::host, -1, 1 << 20, options);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().kind, ErrorKind::invalid_argument);
  }
  EXPECT_FALSE(file.explain(Direction::read, SpaceKind::host, -1, UINT64_MAX));
  EXPECT_TRUE(file.explain(Direction::read, SpaceKind::host, -1, 1 << 20));
}

}  // namespace
}  // namespace straightway
