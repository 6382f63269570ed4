#include "os/pinnable.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>

#include "os/descriptor.hpp"
#include "tests/temp_file.hpp"

namespace straightway::os {
namespace {

using testing::HasSubstr;

class Pinnable : public testing::Test {
 protected:
  std::string why(const std::string& filesystem) {
    facts.filesystem = filesystem;
    return why_not_pinnable(file.get(), facts);
  }
  const tests::TempFolder folder;
  const Descriptor file{::open(folder.write("a", {'a'}).c_str(), O_RDONLY | O_CLOEXEC)};
  FileFacts facts;
};

TEST_F(Pinnable, LocalFileSystemsAre) {
  for (const auto* name : {"ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs"})
    EXPECT_EQ(why(name), "");
}

TEST_F(Pinnable, OthersAreRefusedByName) {
  for (const auto* name : {"overlay", "fuse.sshfs", "hugetlbfs", "ramfs", "unknown", "zfs"}) {
    EXPECT_THAT(why(name), HasSubstr(name));
  }
  facts.is_network = true;
  EXPECT_THAT(why("nfs4"), HasSubstr("network"));
}

TEST_F(Pinnable, OnlyRegularFilesAre) {
  facts.is_block_device = true;
  EXPECT_THAT(why("ext4"), HasSubstr("block device"));
  facts.is_block_device = false;
  facts.filesystem = "tmpfs";
  const Descriptor device(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_THAT(why_not_pinnable(device.get(), facts), HasSubstr("no regular file"));
}

}  // namespace
}  // namespace straightway::os
