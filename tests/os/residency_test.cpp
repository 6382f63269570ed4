#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>

#include "os/facts.hpp"
#include "tests/os/temp_tree.hpp"

namespace straightway::os {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

TEST(Residency, AFreshlyWrittenFileIsResident) {
  const TempTree tree;
  const std::string path = tree.write("file", std::string(2 * mib, 'x'));
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  const Residency whole = read_residency(fd, 0, 2 * mib);
  const Residency half = read_residency(fd, mib, mib);
  const Residency beyond = read_residency(fd, 8 * mib, mib);
  ::close(fd);
  ASSERT_TRUE(whole.known) << whole.why_unknown;
  EXPECT_EQ(whole.resident_bytes, 2 * mib);
  EXPECT_EQ(half.resident_bytes, mib);
  ASSERT_TRUE(beyond.known) << beyond.why_unknown;
  EXPECT_EQ(beyond.resident_bytes, 0U);
  EXPECT_TRUE(std::string(whole.witness) == "cachestat" || std::string(whole.witness) == "mincore");
}

TEST(Residency, ADroppedFileIsNot) {
  const TempTree tree;
  const std::string path = tree.write("file", std::string(2 * mib, 'x'));
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::fdatasync(fd), 0);
  ASSERT_EQ(::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
  const FileFacts facts = read_file_facts(fd, path, "");
  const Residency residency = read_residency(fd, 0, 2 * mib);
  ::close(fd);
  if (facts.device.empty()) GTEST_SKIP() << facts.filesystem << " keeps its pages";
  ASSERT_TRUE(residency.known) << residency.why_unknown;
  EXPECT_LT(residency.resident_bytes, 2 * mib);
}

TEST(Residency, AnEmptyRangeIsNotTheWholeFile) {
  const TempTree tree;
  const std::string path = tree.write("file", std::string(mib, 'x'));
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const Residency residency = read_residency(fd, 0, 0);
  ::close(fd);
  EXPECT_TRUE(residency.known);
  EXPECT_EQ(residency.resident_bytes, 0U);
}

TEST(Residency, A16_RangesThatOverflowAreUnknown) {
  const TempTree tree;
  const std::string path = tree.write("file", "x");
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_FALSE(read_residency(fd, most, 1).known);
  EXPECT_FALSE(read_residency(fd, 1, most).known);
  EXPECT_FALSE(read_residency(fd, std::uint64_t{1} << 62, std::uint64_t{1} << 62).known);
  ::close(fd);
}

TEST(Residency, APipeIsUnknownWithTheReason) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Residency residency = read_residency(ends[0], 0, 4096);
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_FALSE(residency.known);
  EXPECT_EQ(residency.why_unknown, "it is neither a regular file nor a block device");
}

// To others mincore calls a stone-cold file wholly resident, so nothing may be claimed.
TEST(Residency, AnotherUsersFileIsUnknown) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  const TempTree tree;
  const std::string path = tree.write("file", std::string(mib, 'x'));
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(2);
    const Residency residency = read_residency(fd, 0, mib);
    // Linux before 6.13 lets everybody ask cachestat; mincore must not have answered.
    const bool right = !residency.known || std::string(residency.witness) == "cachestat";
    ::_exit(right ? 0 : 1);
  }
  ::close(fd);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace straightway::os
