#include "os/syscalls.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "tests/os/temp_tree.hpp"

namespace straightway::os {
namespace {

TEST(Syscalls, AnswerLikeTheKernel) {
  const TempTree tree;
  const std::string path = tree.root() + "/file";
  const int fd = kernel().open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(kernel().pwrite(fd, "abcdef", 6, 2), 6);
  char got[8] = {};
  EXPECT_EQ(kernel().pread(fd, got, 8, 4), 4);
  EXPECT_STREQ(got, "cdef");
  EXPECT_EQ(kernel().pread(fd, got, 8, 100), 0);
  EXPECT_EQ(kernel().fdatasync(fd), 0);
  EXPECT_EQ(kernel().fsync(fd), 0);
  struct statx status{};
  EXPECT_EQ(kernel().statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &status), 0);
  EXPECT_EQ(status.stx_size, 8U);
  ::close(fd);
}

TEST(Syscalls, FailuresAreNegativeErrno) {
  char byte = 0;
  EXPECT_EQ(kernel().pread(-1, &byte, 1, 0), -EBADF);
  EXPECT_EQ(kernel().pwrite(-1, &byte, 1, 0), -EBADF);
  EXPECT_EQ(kernel().open("/nonexistent/file", O_RDONLY, 0), -ENOENT);
  EXPECT_EQ(kernel().fsync(-1), -EBADF);
  EXPECT_EQ(kernel().fdatasync(-1), -EBADF);
  EXPECT_EQ(kernel().fallocate(-1, 0, 1), -EBADF);
  // An offset beyond the kernel's signed one is refused there, not wrapped here.
  EXPECT_LT(kernel().pread(0, &byte, 1, ~std::uint64_t{0}), 0);
}

}  // namespace
}  // namespace straightway::os
