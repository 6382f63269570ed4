// Ending a process with transfers under way: its exit code is what it said.

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "tests/temp_file.hpp"

namespace straightway {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr int runs = 2;  // each takes seconds there
#else
constexpr int runs = 10;
#endif

// The exit code, or minus the signal.
int run(const char* what, const char* how, const std::string& path) {
  const char* const arguments[] = {EXIT_PROGRAM, what, how, path.c_str(), nullptr};
  pid_t child = -1;
  if (::posix_spawn(&child, EXIT_PROGRAM, nullptr, nullptr, const_cast<char* const*>(arguments),
                    environ) != 0) {
    return -1000;
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

class Exit : public testing::TestWithParam<const char*> {};

TEST_P(Exit, C2_TheCodeIsKept) {
  const tests::TempFolder folder;
  const auto path = folder.write("a", tests::pattern(std::size_t{8} << 20));
  for (const char* how : {"exit", "quick_exit", "return", "throw"}) {
    for (int i = 0; i < runs; ++i) ASSERT_EQ(run(GetParam(), how, path), 7) << how << ' ' << i;
  }
}

TEST_P(Exit, C2_AnUncaughtExceptionAbortsAsEver) {
  const tests::TempFolder folder;
  const auto path = folder.write("a", tests::pattern(std::size_t{8} << 20));
  for (int i = 0; i < runs; ++i) ASSERT_EQ(run(GetParam(), "uncaught", path), -SIGABRT) << i;
}

INSTANTIATE_TEST_SUITE_P(With, Exit, testing::Values("idle", "reading", "thread", "owned"),
                         [](const auto& with) { return std::string(with.param); });

}  // namespace
}  // namespace straightway
