#include "api/engine.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "os/machine_facts.hpp"
#include "straightway/file.hpp"
#include "tests/cases/in_child.hpp"
#include "tests/temp_file.hpp"

namespace straightway {
namespace {

std::ptrdiff_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

// Runs `check` in a forked child and expects it to be true.
template <class Check>
void expect_in_child(Check check) {
  tests::settle_before_fork();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Engine, AContextStartsNoThreadAndOpensNothing) {
  const auto threads = entries("/proc/self/task");
  const auto files = entries("/proc/self/fd");
  auto context = std::move(Context::create()).value();
  // A thread that was joined stays listed for an instant, before and after.
  for (int i = 0; i < 1000 && entries("/proc/self/task") > threads; ++i) ::usleep(1000);
  EXPECT_LE(entries("/proc/self/task"), threads);
  EXPECT_EQ(entries("/proc/self/fd"), files);
}

TEST(Engine, C3_AHundredContextsLeaveNothingBehind) {
  const tests::TempFolder folder;
  const auto bytes = tests::pattern(1 << 20);
  const auto path = folder.write("a", bytes);
  std::thread([] {}).join();  // TSan starts a thread of its own with the first one
  const auto threads = entries("/proc/self/task");
  const auto files = entries("/proc/self/fd");
  for (int i = 0; i < 100; ++i) {
    auto context = std::move(Context::create()).value();
    auto file = std::move(File::open(path, "r", {}, context)).value();
    std::vector<char> memory(bytes.size());
    ASSERT_TRUE(file.read_into({memory.data(), memory.size()}));
    ASSERT_EQ(memory, bytes);
  }
  // A thread that was joined stays listed for an instant, before and after.
  for (int i = 0; i < 1000 && entries("/proc/self/task") > threads; ++i) ::usleep(1000);
  EXPECT_LE(entries("/proc/self/task"), threads);
  EXPECT_EQ(entries("/proc/self/fd"), files);
}

TEST(Engine, F3_TheApiWinsOverTheEnvironment) {
  ::setenv("STRAIGHTWAY_THREADS", "3", 1);
  ::setenv("STRAIGHTWAY_CACHE", "keep", 1);
  ContextOptions options;
  options.threads = 2;
  auto context = std::move(Context::create(options)).value();
  EXPECT_EQ(context->settings().threads.value, 2U);
  EXPECT_EQ(context->settings().threads.origin, Origin::api);
  EXPECT_EQ(context->settings().cache.value, Cache::keep);
  EXPECT_EQ(context->settings().cache.origin, Origin::environment);
  ::setenv("STRAIGHTWAY_THREADS", "many", 1);
  const auto failed = Context::create();
  ::unsetenv("STRAIGHTWAY_THREADS");
  ::unsetenv("STRAIGHTWAY_CACHE");
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message().find("STRAIGHTWAY_THREADS"), std::string::npos);
}

TEST(Engine, F4_BudgetsAreChecked) {
  ContextOptions options;
  options.threads = 1025;
  EXPECT_EQ(Context::create(options).error().kind, ErrorKind::invalid_argument);
  options = {};
  options.pinned_bytes = 1000;
  EXPECT_EQ(Context::create(options).error().kind, ErrorKind::invalid_argument);
}

TEST(Engine, AForkedChildReadsAfresh) {
  const tests::TempFolder folder;
  const auto bytes = tests::pattern(4 << 20);
  auto context = std::move(Context::create()).value();
  auto file = std::move(File::open(folder.write("a", bytes), "r", {}, context)).value();
  std::vector<char> memory(bytes.size());
  ASSERT_TRUE(file.read_into({memory.data(), memory.size()}));  // the pump runs
  auto job = std::move(file.submit_read({memory.data(), memory.size()})).value();
  expect_in_child([&] {
    std::vector<char> own(bytes.size());
    if (job.result().ok() || job.result().error().kind != ErrorKind::forked) return false;
    if (!file.read_into({own.data(), own.size()}) || own != bytes) return false;
    if (!file.read_into({own.data(), 100})) return false;
    return file.close().ok();  // does not wait for the parent's job
  });
  EXPECT_TRUE(job.result());
  EXPECT_EQ(memory, bytes);
}

// Asked from another process.
bool is_heard(std::uint32_t copiers) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto words = os::Neighbours().look(false);
    ::_exit(std::find(words.begin(), words.end(), copiers) != words.end() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status) == 1;
}

// Whether this kernel keeps locks on the namespace's file.
bool has_neighbours() {
  os::Neighbours own;
  own.announce(903);
  const bool heard = is_heard(903);
  own.withdraw();
  return heard;
}

TEST(Engine, ALargeTransferIsSaidToOthersAndASmallOneIsNot) {
  if (!has_neighbours()) GTEST_SKIP() << "no locks on the namespace's file here";
  const tests::TempFolder folder;
  const auto bytes = tests::pattern(17 << 20);
  ContextOptions options;
  options.threads = 907;
  auto context = std::move(Context::create(options)).value();
  auto file = std::move(File::open(folder.write("a", bytes), "r", {}, context)).value();
  std::vector<char> memory(bytes.size());
  std::atomic<bool> heard{false};
  CallOptions watched;
  watched.on_progress = [&](const Progress&) { heard = heard || is_heard(907); };
  ASSERT_TRUE(file.read_into({memory.data(), 1 << 20}, watched));
  EXPECT_FALSE(heard);
  ASSERT_TRUE(file.read_into({memory.data(), memory.size()}, watched));
  EXPECT_TRUE(heard);
  EXPECT_EQ(memory, bytes);
  file = File();
  context.reset();
  EXPECT_FALSE(is_heard(907)) << "a Context that is gone says nothing";
}

TEST(Engine, ThePlanSaysWhatNeighboursLeave) {
  if (!has_neighbours()) GTEST_SKIP() << "no locks on the namespace's file here";
  if (os::usable_cpus().count < 2) GTEST_SKIP() << "one CPU only";
  const tests::TempFolder folder;
  const auto path = folder.write("a", tests::pattern(2 << 20));
  const auto says_neighbours = [&](std::uint64_t threads) {
    ContextOptions options;
    options.threads = threads;
    auto context = std::move(Context::create(options)).value();
    auto file = std::move(File::open(path, "r", {}, context)).value();
    const auto plan = file.explain(Direction::read, SpaceKind::host, -1, 2 << 20);
    return plan->to_json().find("\"neighbours\"") != std::string::npos;
  };
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  tests::settle_before_fork();
  const pid_t other = ::fork();
  if (other == 0) {
    os::Neighbours own;
    own.announce(1000);
    (void)!::write(ready[1], "r", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(says_neighbours(0));
  EXPECT_FALSE(says_neighbours(2)) << "a setting is not reduced";
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(Engine, WarmupStartsWhatTransfersNeed) {
  auto context = std::move(Context::create()).value();
  const auto threads = entries("/proc/self/task");
  EXPECT_TRUE(context->warmup());
  EXPECT_GT(entries("/proc/self/task"), threads);
}

TEST(Engine, DescriptorsZeroToTwoAreNeverTaken) {
  const tests::TempFolder folder;
  const auto bytes = tests::pattern(2 << 20);
  const auto path = folder.write("a", bytes);
  expect_in_child([&] {
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    auto context = std::move(Context::create()).value();
    auto file = std::move(File::open(path, "r", {}, context)).value();
    CallOptions direct;
    direct.cache = Cache::bypass;
    std::vector<char> memory(bytes.size());
    if (!file.read_into({memory.data(), memory.size()}, direct) || memory != bytes) return false;
    if (!file.read_into({memory.data(), memory.size()})) return false;
    for (int fd = 0; fd < 3; ++fd) {
      if (::fcntl(fd, F_GETFD) >= 0) return false;
    }
    return true;
  });
}

}  // namespace
}  // namespace straightway
