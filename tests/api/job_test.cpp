#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include "straightway/file.hpp"
#include "tests/temp_file.hpp"

namespace straightway {
namespace {

using namespace std::chrono_literals;

class JobTest : public testing::Test {
 protected:
  JobTest() : bytes(tests::pattern(8 << 20)), memory(bytes.size()) {
    file = std::move(File::open(folder.write("a", bytes))).value();
  }
  tests::TempFolder folder;
  std::vector<char> bytes;
  std::vector<char> memory;
  File file;
};

TEST_F(JobTest, C8_DoneIsMonotoneAndTheResultStays) {
  auto job = std::move(file.submit_read({memory.data(), memory.size()})).value();
  const auto first = job.result();
  ASSERT_TRUE(first);
  EXPECT_TRUE(job.done());
  const auto second = job.result();
  ASSERT_TRUE(second);
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(memory, bytes);
  EXPECT_FALSE(job.cancel());
  EXPECT_EQ(job.progress().moved_bytes, bytes.size());
}

TEST_F(JobTest, ItOwnsItsFileAndOwnerUntilDrained) {
  auto owner = std::make_shared<std::vector<char>>(bytes.size());
  const std::weak_ptr<std::vector<char>> watched = owner;
  auto job = std::move(file.submit_read({owner->data(), owner->size()}, {}, owner)).value();
  auto* data = owner->data();
  owner.reset();
  static_cast<void>(data);
  file = File();  // closes; waits for the job
  EXPECT_TRUE(job.done());
  EXPECT_TRUE(job.result());
  EXPECT_TRUE(watched.expired());
}

TEST_F(JobTest, CloseDrains) {
  auto job = std::move(file.submit_read({memory.data(), memory.size()})).value();
  EXPECT_TRUE(file.close());
  EXPECT_TRUE(job.done());
  EXPECT_EQ(memory, bytes);
}

TEST_F(JobTest, ADroppedJobIsFinishedByTheContext) {
  std::promise<void> finished;
  {
    auto job = std::move(file.submit_read({memory.data(), memory.size()})).value();
    job.on_done([&] { finished.set_value(); });
  }
  finished.get_future().wait();
  EXPECT_EQ(memory, bytes);
}

TEST_F(JobTest, CancelLeavesNothingInFlight) {
  for (int i = 0; i < 20; ++i) {
    auto job = std::move(file.submit_read({memory.data(), memory.size()})).value();
    const bool told = job.cancel();
    const auto receipt = job.result();
    if (!receipt) {
      EXPECT_TRUE(told);
      EXPECT_EQ(receipt.error().kind, ErrorKind::cancelled);
    }
    std::fill(memory.begin(), memory.end(), 'x');  // nothing writes here any more
    ASSERT_EQ(memory, std::vector<char>(bytes.size(), 'x'));
  }
}

TEST_F(JobTest, DeadlinesAndArgumentsAreChecked) {
  CallOptions options;
  options.deadline = 0ns;
  EXPECT_EQ(file.submit_read({memory.data(), 10}, options).error().kind,
            ErrorKind::invalid_argument);
  options.deadline = 1ns;
  const auto late = file.read_into({memory.data(), memory.size()}, options);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::deadline_exceeded);
  options.deadline = 1h;
  EXPECT_TRUE(file.read_into({memory.data(), memory.size()}, options));
}

TEST_F(JobTest, ProgressEndsAtTheWhole) {
  std::atomic<std::uint64_t> moved{0};
  CallOptions options;
  options.on_progress = [&](const Progress& progress) {
    EXPECT_EQ(progress.wanted_bytes, bytes.size());
    EXPECT_GE(progress.moved_bytes, moved.load());
    moved = progress.moved_bytes;
  };
  EXPECT_TRUE(file.read_into({memory.data(), memory.size()}, options));
  EXPECT_EQ(moved.load(), bytes.size());
}

TEST_F(JobTest, ProgressOfAFailedJobIsWhatHadMoved) {
  std::vector<char> larger(bytes.size() + 5000);
  CallOptions options;
  options.exact = true;
  const auto job = std::move(file.submit_read({larger.data(), larger.size()}, options)).value();
  ASSERT_FALSE(job.result());
  EXPECT_EQ(job.result().error().kind, ErrorKind::short_transfer);
  EXPECT_EQ(job.progress().moved_bytes, bytes.size());
  EXPECT_EQ(job.progress().wanted_bytes, larger.size());
}

TEST_F(JobTest, CallbacksComeInTheOrderInWhichTheyWereGiven) {
  std::promise<void> given;
  std::promise<void> called;
  std::vector<int> seen;
  const auto job = std::move(file.submit_read({memory.data(), memory.size()})).value();
  job.on_done([&] {
    given.get_future().wait();  // the job is done, and the second was given while this one runs
    seen.push_back(1);
  });
  ASSERT_TRUE(job.result());
  job.on_done([&] {
    seen.push_back(2);
    called.set_value();
  });
  given.set_value();
  called.get_future().wait();
  EXPECT_EQ(seen, (std::vector<int>{1, 2}));
}

TEST_F(JobTest, WhatACallbackThrowsIsDropped) {
  const auto job = std::move(file.submit_read({memory.data(), memory.size()})).value();
  std::promise<void> called;
  job.on_done([] { throw std::runtime_error("from a callback"); });
  job.on_done([&] { called.set_value(); });
  called.get_future().wait();
  while (!job.done()) std::this_thread::yield();
  EXPECT_NO_THROW(job.on_done([] { throw std::runtime_error("from a late one"); }));
}

TEST_F(JobTest, AnEmptyJobIsAnError) {
  EXPECT_EQ(Job().result().error().kind, ErrorKind::closed);
  EXPECT_TRUE(Job().done());
}

TEST_F(JobTest, ACallbackMayCloseTheFileAndSubmitAgain) {
  auto other = std::make_shared<File>(std::move(File::open(folder.path("a"))).value());
  std::promise<bool> nested;
  auto job = std::move(other->submit_read({memory.data(), memory.size()})).value();
  job.on_done([&, other]() mutable {
    auto again = file.submit_read({memory.data(), 1 << 20});
    static_cast<void>(other->close());
    nested.set_value(again.ok());
  });
  EXPECT_TRUE(nested.get_future().get());
}

}  // namespace
}  // namespace straightway
