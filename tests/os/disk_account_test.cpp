#include "os/disk_account.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/os/temp_tree.hpp"

namespace straightway::os {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

TEST(DiskAccount, DoesNotCountWhatTheCacheGave) {
  const TempTree tree;
  const std::string path = tree.write("file", std::string(mib, 'x'));
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string to(mib, 0);
  const DiskAccount account;
  const auto before = account.read_bytes();
  ASSERT_EQ(::pread(fd, to.data(), to.size(), 0), static_cast<ssize_t>(mib));
  const auto after = account.read_bytes();
  ::close(fd);
  if (before < 0) GTEST_SKIP() << "this kernel keeps no I/O accounts";
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace straightway::os
