#include "transport/uring.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <vector>

#include "tests/cases/in_child.hpp"
#include "tests/cases/refuse_call.hpp"
#include "tests/temp_file.hpp"

namespace straightway::transport {
namespace {

TEST(Uring, ReadsWithManyInFlight) {
  auto wake = Wake::create();
  auto uring = Uring::create(8, **wake);
  if (!uring) GTEST_SKIP() << uring.error().message();
  const tests::TempFolder folder;
  const auto bytes = tests::pattern(100 * 4096);
  const int fd = ::open(folder.write("a", bytes).c_str(), O_RDONLY);
  std::vector<char> memory(bytes.size());
  std::size_t submitted = 0;
  std::size_t reaped = 0;
  while (reaped < 100) {
    std::vector<Segment> segments;
    for (auto i = submitted; i < 100; ++i) {
      Segment segment;
      segment.cookie = i;
      segment.file = static_cast<std::uint64_t>(fd);
      segment.file_offset = i * 4096;
      segment.size_bytes = 4096;
      segment.address = reinterpret_cast<std::uint64_t>(memory.data()) + i * 4096;
      segments.push_back(segment);
    }
    submitted += (*uring)->submit(segments);
    EXPECT_LE(submitted - reaped, 8U);
    Completion completions[3];
    const auto got = (*uring)->reap(completions);
    for (std::size_t i = 0; i < got; ++i) EXPECT_EQ(completions[i].result, 4096);
    reaped += got;
    if (got == 0) (*wake)->wait(UINT64_MAX);
  }
  EXPECT_EQ(memory, bytes);
  ::close(fd);
}

TEST(Uring, AnswersErrorsAsErrno) {
  auto wake = Wake::create();
  auto uring = Uring::create(4, **wake);
  if (!uring) GTEST_SKIP() << uring.error().message();
  char byte = 0;
  Segment segment;
  segment.file = static_cast<std::uint64_t>(-1);
  segment.size_bytes = 1;
  segment.address = reinterpret_cast<std::uint64_t>(&byte);
  ASSERT_EQ((*uring)->submit({&segment, 1}), 1U);
  Completion completion;
  while ((*uring)->reap({&completion, 1}) == 0) (*wake)->wait(UINT64_MAX);
  EXPECT_EQ(completion.result, -EBADF);
}

// The ring works, and later a filter comes: what the kernel did not take ends with its error.
TEST(Uring, H_ARefusalThatStaysEndsTheSegments) {
  const int code = tests::in_child([] {
    ::alarm(60);
    auto wake = Wake::create();
    auto uring = Uring::create(4, **wake);
    if (!uring) return 77;
    if (!tests::refuse_call(SYS_io_uring_enter)) return 77;
    char bytes[6] = {};
    std::vector<Segment> segments(6);
    for (std::size_t i = 0; i < 6; ++i) {
      segments[i].cookie = i;
      segments[i].size_bytes = 1;
      segments[i].address = reinterpret_cast<std::uint64_t>(&bytes[i]);
    }
    std::size_t submitted = 0;
    std::size_t reaped = 0;
    while (reaped < 6) {
      submitted += (*uring)->submit(std::span(segments).subspan(submitted));
      if (submitted - reaped > 4) return 2;
      Completion completions[3];
      const auto got = (*uring)->reap(completions);
      for (std::size_t i = 0; i < got; ++i) {
        if (completions[i].result != -EPERM || completions[i].cookie > 5) return 3;
      }
      reaped += got;
      if (got == 0) (*wake)->wait((*uring)->capabilities().poll_interval_ns);
    }
    if (submitted != 6 || !(*uring)->capabilities().broken) return 4;
    const auto another = Uring::create(4, **wake);
    if (another) return 5;
    (*uring)->submit(std::span(segments).first(1));  // the destructor waits for nothing
    return 0;
  });
  if (code == 77) GTEST_SKIP() << "no io_uring or no seccomp filters here";
  EXPECT_EQ(code, 0);
}

// A child under a filter that answers EPERM to io_uring_setup.
TEST(Uring, H_RefusedBySeccompIsAnErrorValue) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!tests::refuse_call(SYS_io_uring_setup)) ::_exit(77);
    auto wake = Wake::create();
    auto uring = Uring::create(4, **wake);
    ::_exit(!uring && uring.error().code == EPERM && uring.error().kind == ErrorKind::unsupported
                ? 0
                : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no seccomp filters here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace straightway::transport
