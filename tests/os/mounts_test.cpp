#include "os/mounts.hpp"

#include <gtest/gtest.h>

namespace straightway::os {
namespace {

Mount mount_at(std::uint64_t id, std::uint32_t device_minor, const char* point, const char* type) {
  return {id, 8, device_minor, point, type, "/dev/sda"};
}

MountedFile file_at(const char* path, std::uint32_t device_minor) {
  return {0, 8, device_minor, path, ""};
}

TEST(Mounts, ParsesEveryFieldThatCounts) {
  const auto mounts = parse_mounts(
      "36 35 98:0 /sub /mnt/a rw,noatime master:1 shared:2 - ext4 /dev/root rw,errors=continue\n"
      "37 35 0:41 / /n rw - nfs4 server:/export rw\n");
  ASSERT_EQ(mounts.size(), 2U);
  EXPECT_EQ(mounts[0], (Mount{36, 98, 0, "/mnt/a", "ext4", "/dev/root"}));
  EXPECT_EQ(mounts[1], (Mount{37, 0, 41, "/n", "nfs4", "server:/export"}));
}

TEST(Mounts, EscapedCharactersInMountPoints) {
  const auto mounts = parse_mounts("1 0 8:1 / /my\\040disk\\134x\\011 rw - xfs /dev/a\\040b rw\n");
  ASSERT_EQ(mounts.size(), 1U);
  EXPECT_EQ(mounts[0].mount_point, "/my disk\\x\t");
  EXPECT_EQ(mounts[0].source, "/dev/a b");
}

TEST(Mounts, BrokenLinesAreLeftOut) {
  const auto mounts = parse_mounts(
      "\nnonsense\n1 0 8:1\n1 0 8:1 / /a rw ext4 /dev/sda rw\nx 0 8:1 / /b rw - ext4 s rw\n"
      "2 0 8:1 / /c rw - ext4 /dev/sda rw");
  ASSERT_EQ(mounts.size(), 1U);
  EXPECT_EQ(mounts[0].mount_point, "/c");
}

TEST(Mounts, H_MountMatchingUsesLongestPrefix) {
  const std::vector<Mount> mounts = {mount_at(1, 1, "/", "ext4"), mount_at(2, 1, "/data", "ext4"),
                                     mount_at(3, 1, "/data/deep", "ext4")};
  EXPECT_EQ(find_mount(mounts, file_at("/data/deep/file", 1))->mount_point, "/data/deep");
  EXPECT_EQ(find_mount(mounts, file_at("/data/deeper", 1))->mount_point, "/data");
  EXPECT_EQ(find_mount(mounts, file_at("/data", 1))->mount_point, "/data");
  EXPECT_EQ(find_mount(mounts, file_at("/other", 1))->mount_point, "/");
}

TEST(Mounts, H_DataDoesNotContainDatabase) {
  EXPECT_TRUE(contains_path("/data", "/data"));
  EXPECT_TRUE(contains_path("/data", "/data/x"));
  EXPECT_TRUE(contains_path("/", "/data"));
  EXPECT_FALSE(contains_path("/data", "/database"));
  EXPECT_FALSE(contains_path("/data", "/dat"));
  const std::vector<Mount> mounts = {mount_at(1, 1, "/", "ext4"), mount_at(2, 1, "/data", "xfs")};
  EXPECT_EQ(find_mount(mounts, file_at("/database/file", 1))->filesystem, "ext4");
}

TEST(Mounts, TheDeviceCountsMoreThanThePath) {
  const std::vector<Mount> mounts = {mount_at(1, 1, "/", "ext4"), mount_at(2, 2, "/data", "xfs")};
  // Opened before something else was mounted over its folder.
  EXPECT_EQ(find_mount(mounts, file_at("/data/file", 1))->filesystem, "ext4");
}

TEST(Mounts, TheMountIdTellsBindMountsApart) {
  const std::vector<Mount> mounts = {mount_at(7, 1, "/a", "ext4"), mount_at(8, 1, "/a", "ext4")};
  MountedFile file = file_at("/a/file", 1);
  file.mount_id = 7;
  EXPECT_EQ(find_mount(mounts, file), &mounts[0]);
  file.mount_id = 0;
  EXPECT_EQ(find_mount(mounts, file), &mounts[1]) << "the later mount covers the earlier one";
}

TEST(Mounts, BtrfsFilesHaveADeviceNumberOfTheirOwn) {
  const std::vector<Mount> mounts = {mount_at(1, 1, "/", "ext4"), mount_at(2, 2, "/b", "btrfs")};
  const MountedFile file{0, 0, 99, "/b/file", "btrfs"};
  EXPECT_EQ(find_mount(mounts, file), &mounts[1]);
}

TEST(Mounts, AnUnlistedFileIsNotGivenToTheRoot) {
  const std::vector<Mount> mounts = {mount_at(1, 1, "/", "ext4")};
  EXPECT_EQ(find_mount(mounts, {0, 0, 1, "/memfd:x (deleted)", "tmpfs"}), nullptr);
  EXPECT_EQ(find_mount(mounts, {0, 0, 1, "/x", ""}), nullptr);
}

TEST(Mounts, NetworkFilesystems) {
  for (const char* name : {"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "lustre", "virtiofs",
                           "fuse", "fuse.sshfs", "fuse.gcsfuse", "beegfs"}) {
    EXPECT_TRUE(is_network_filesystem(name)) << name;
  }
  for (const char* name : {"ext4", "xfs", "tmpfs", "overlay", "fuseblk", "unknown", ""}) {
    EXPECT_FALSE(is_network_filesystem(name)) << name;
  }
}

TEST(Mounts, MagicNumbers) {
  EXPECT_STREQ(filesystem_by_magic(0x58465342), "xfs");
  EXPECT_STREQ(filesystem_by_magic(0xFFFFFFFF9123683E), "btrfs") << "sign-extended f_type";
  EXPECT_STREQ(filesystem_by_magic(1), "");
}

}  // namespace
}  // namespace straightway::os
