#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "os/direct_alignment.hpp"
#include "os/facts.hpp"
#include "tests/cases/in_child.hpp"
#include "tests/cases/refuse_call.hpp"
#include "tests/os/temp_tree.hpp"

namespace straightway::os {
namespace {

class Opened {
 public:
  explicit Opened(const std::string& path, int flags = O_RDONLY)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC)) {}
  ~Opened() { ::close(fd_); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

std::string number_of(const std::string& path) {
  struct stat status{};
  ::stat(path.c_str(), &status);
  return std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
}

TEST(FileFacts, ReadsMountAndDeviceFromTheGivenRoot) {
  const TempTree tree;
  const std::string path = tree.write("file", "x");
  const std::string number = number_of(path);
  tree.write("proc/self/mountinfo", "900001 1 " + number + " / / rw - xfs /dev/nvme0n1 rw\n");
  tree.link("sys/dev/block/" + number, "../../devices/nvme0n1");
  tree.write("sys/devices/nvme0n1/queue/logical_block_size", "512\n");
  const Opened file(path);
  const FileFacts facts = read_file_facts(file.fd(), "file", tree.root());
  EXPECT_EQ(facts.path, "file");
  EXPECT_EQ(facts.filesystem, "xfs");
  EXPECT_EQ(facts.mount_point, "/");
  EXPECT_EQ(facts.device, "/dev/nvme0n1");
  EXPECT_EQ(facts.device_driver, "nvme");
  EXPECT_FALSE(facts.is_network);
  EXPECT_FALSE(facts.is_block_device);
}

// Where the kernel does not say, the file is opened to ask; not in the place of a closed standard
// stream, though it be the only one left.
TEST(FileFacts, DescriptorsZeroToTwoAreNotUsedToAsk) {
  const TempTree tree;
  const Opened file(tree.write("file", "x"));
  const auto answered = [&] {
    return read_file_facts(file.fd(), "file").direct_offset_align_bytes != 0;
  };
  const int code = tests::in_child([&] {
    if (!tests::refuse_call(SYS_statx) || !answered()) return 77;
    ::close(0);
    const rlimit few{64, 64};
    ::setrlimit(RLIMIT_NOFILE, &few);
    while (::fcntl(file.fd(), F_DUPFD, 3) >= 0) {
    }
    return answered() ? 1 : 0;
  });
  if (code == 77) GTEST_SKIP() << "no filters, or no O_DIRECT here";
  EXPECT_EQ(code, 0);
}

TEST(FileFacts, NetworkMount) {
  const TempTree tree;
  const std::string path = tree.write("file", "x");
  tree.write("proc/self/mountinfo",
             "900001 1 " + number_of(path) + " / / rw - nfs4 server:/export rw\n");
  const Opened file(path);
  const FileFacts facts = read_file_facts(file.fd(), path, tree.root());
  EXPECT_EQ(facts.filesystem, "nfs4");
  EXPECT_TRUE(facts.is_network);
  EXPECT_EQ(facts.device, "");
  EXPECT_EQ(facts.device_driver, "");
}

TEST(FileFacts, H_SymlinkFollowed) {
  const TempTree tree;
  tree.write("blobs/real", "x");
  const std::string link = tree.link("models/weights", "../blobs/real");
  const std::string number = number_of(link);
  tree.write("proc/self/mountinfo", "900001 1 " + number + " / " + tree.root() +
                                        "/blobs rw - ext4 /dev/sdb rw\n" + "900002 1 " + number +
                                        " / " + tree.root() + "/models rw - ext4 /dev/sdc rw\n");
  const Opened file(link);
  const FileFacts facts = read_file_facts(file.fd(), link, tree.root());
  EXPECT_EQ(facts.mount_point, tree.root() + "/blobs");
  EXPECT_EQ(facts.path, link) << "the name stays as the user gave it";
}

TEST(FileFacts, WithoutMountinfoTheKernelStillNamesTheFilesystem) {
  const TempTree tree;
  const int fd = ::memfd_create("straightway", MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  const FileFacts facts = read_file_facts(fd, "fd 9", tree.root());
  ::close(fd);
  EXPECT_EQ(facts.filesystem, "tmpfs");
  EXPECT_EQ(facts.mount_point, "");
  EXPECT_EQ(facts.path, "fd 9");
}

TEST(FileFacts, E14_MemoryFilesystemsHaveNoDirectIo) {
  const int fd = ::memfd_create("straightway", MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  const FileFacts facts = read_file_facts(fd, "fd", "");
  ::close(fd);
  EXPECT_EQ(facts.direct_offset_align_bytes, 0U);
  EXPECT_EQ(facts.direct_memory_align_bytes, 0U);
}

TEST(FileFacts, TheRealFileSystemAgreesWithADirectOpen) {
  const TempTree tree;
  const std::string path = tree.write("file", std::string(8192, 'x'));
  const Opened file(path);
  const FileFacts facts = read_file_facts(file.fd(), path, "");
  EXPECT_NE(facts.filesystem, "unknown");
  EXPECT_TRUE(path.starts_with(facts.mount_point)) << facts.mount_point;
  if (facts.direct_offset_align_bytes == 0) GTEST_SKIP() << "no O_DIRECT on " << facts.filesystem;
  const Opened direct(path, O_RDONLY | O_DIRECT);
  ASSERT_GE(direct.fd(), 0);
  alignas(4096) static char block[4096];
  ASSERT_LE(facts.direct_offset_align_bytes, sizeof block);
  EXPECT_EQ(::pread(direct.fd(), block, sizeof block, 0), static_cast<ssize_t>(sizeof block));
}

TEST(FileFacts, ADeadDescriptorLeavesEverythingUnknown) {
  const FileFacts facts = read_file_facts(-1, "gone", "");
  EXPECT_EQ(facts.path, "gone");
  EXPECT_EQ(facts.filesystem, "unknown");
  EXPECT_EQ(facts.direct_offset_align_bytes, 0U);
}

TEST(DirectAlignment, A10_TheProbedAlignmentIsUsed) {
  for (const std::uint32_t probed : {512U, 4096U, 65536U}) {
    DirectWitnesses by_statx;
    by_statx.statx = DirectAlignment{probed, 4};
    by_statx.logical_block_bytes = 4096;
    EXPECT_EQ(choose_direct_alignment("lustre", by_statx), (DirectAlignment{probed, 4}));
    DirectWitnesses by_device;
    by_device.logical_block_bytes = probed;
    by_device.opens_direct = true;
    EXPECT_EQ(choose_direct_alignment("ext4", by_device), (DirectAlignment{probed, probed}));
    DirectWitnesses by_page;
    by_page.opens_direct = true;
    by_page.page_bytes = probed;
    EXPECT_EQ(choose_direct_alignment("nfs4", by_page), (DirectAlignment{probed, probed}));
  }
}

TEST(DirectAlignment, E14_RefusedOrMeaninglessDirectIoIsNone) {
  DirectWitnesses refused;
  refused.logical_block_bytes = 512;
  EXPECT_EQ(choose_direct_alignment("ecryptfs", refused), DirectAlignment{});
  DirectWitnesses accepted;
  accepted.opens_direct = true;
  EXPECT_EQ(choose_direct_alignment("tmpfs", accepted), DirectAlignment{});
  DirectWitnesses denied;
  denied.statx = DirectAlignment{0, 0};
  denied.opens_direct = true;
  EXPECT_EQ(choose_direct_alignment("ext4", denied), DirectAlignment{});
}

TEST(DirectAlignment, ABlockSizeThatIsNoPowerOfTwoIsNotBelieved) {
  DirectWitnesses odd;
  odd.logical_block_bytes = 520;
  odd.opens_direct = true;
  EXPECT_EQ(choose_direct_alignment("ext4", odd), (DirectAlignment{4096, 4096}));
}

TEST(FileSize, A9_SizesBeyondFourGiB) {
  const TempTree tree;
  const std::string path = tree.write("big", "");
  const Opened file(path, O_RDWR);
  for (const std::uint64_t gib : {3ULL, 5ULL}) {
    ASSERT_EQ(::ftruncate(file.fd(), static_cast<off_t>(gib << 30)), 0);
    const auto size = file_size(file.fd(), path);
    ASSERT_TRUE(size.ok());
    EXPECT_EQ(*size, gib << 30);
  }
}

TEST(FileSize, B11_WhatHasNoSizeIsRefused) {
  const TempTree tree;
  const Opened folder(tree.root(), O_RDONLY | O_DIRECTORY);
  const auto size = file_size(folder.fd(), tree.root());
  ASSERT_FALSE(size.ok());
  EXPECT_EQ(size.error().kind, ErrorKind::wrong_file_type);
  EXPECT_EQ(size.error().path, tree.root());
  const auto closed = file_size(-1, "gone");
  ASSERT_FALSE(closed.ok());
  EXPECT_EQ(closed.error().code, EBADF);
  EXPECT_EQ(closed.error().why, "EBADF: Bad file descriptor");
}

}  // namespace
}  // namespace straightway::os
