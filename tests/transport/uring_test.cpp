#include "transport/uring.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

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

// A child under a filter that answers EPERM to io_uring_setup.
TEST(Uring, H_RefusedBySeccompIsAnErrorValue) {
  const pid_t child = ::fork();
  if (child == 0) {
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{4, filter};
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) ::_exit(77);
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
