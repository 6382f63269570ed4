#include "os/block_device.hpp"

#include <gtest/gtest.h>

#include "tests/os/temp_tree.hpp"

namespace straightway::os {
namespace {

// A disk in a fake /sys: its folder, its driver's link and its block size.
void add_disk(const TempTree& tree, const std::string& number, const std::string& folder,
              const std::string& driver = "") {
  tree.write("sys/devices/" + folder + "/queue/logical_block_size", "512\n");
  tree.link("sys/dev/block/" + number, "../../devices/" + folder);
  if (!driver.empty()) {
    tree.link("sys/devices/" + folder + "/device/driver", "../../../bus/drivers/" + driver);
  }
}

TEST(BlockDevice, VirtioDisk) {
  const TempTree tree;
  add_disk(tree, "254:0", "pci/virtio1/block/vda", "virtio_blk");
  const auto found = read_block_device(254, 0, tree.root());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->device, "/dev/vda");
  EXPECT_EQ(found->driver, "virtio-blk");
  EXPECT_EQ(found->logical_block_bytes, 512U);
}

TEST(BlockDevice, APartitionIsOfItsDisk) {
  const TempTree tree;
  add_disk(tree, "259:0", "pci/nvme/nvme0/nvme0n1");
  tree.write("sys/devices/pci/nvme/nvme0/nvme0n1/nvme0n1p2/partition", "2\n");
  tree.link("sys/dev/block/259:2", "../../devices/pci/nvme/nvme0/nvme0n1/nvme0n1p2");
  const auto found = read_block_device(259, 2, tree.root());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->device, "/dev/nvme0n1");
  EXPECT_EQ(found->driver, "nvme");
  EXPECT_EQ(found->logical_block_bytes, 512U);
}

TEST(BlockDevice, AnNvmeDriveBehindANetworkSaysSo) {
  const TempTree tree;
  add_disk(tree, "259:0", "virtual/nvme0n1");
  tree.write("sys/devices/virtual/nvme0n1/device/transport", "tcp\n");
  EXPECT_EQ(read_block_device(259, 0, tree.root())->driver, "nvme-tcp");
  add_disk(tree, "259:1", "virtual/nvme1n1");
  tree.write("sys/devices/virtual/nvme1n1/device/transport", "pcie\n");
  EXPECT_EQ(read_block_device(259, 1, tree.root())->driver, "nvme");
}

TEST(BlockDevice, VirtualDevicesByName) {
  const TempTree tree;
  const std::pair<const char*, const char*> expected[] = {
      {"dm-3", "device-mapper"}, {"md127", "md"}, {"loop0", "loop"},
      {"zram0", "zram"},         {"nbd1", "nbd"}, {"pmem0", "pmem"}};
  unsigned device_minor = 0;
  for (const auto& [name, driver] : expected) {
    add_disk(tree, "240:" + std::to_string(device_minor), std::string("virtual/block/") + name);
    const auto found = read_block_device(240, device_minor++, tree.root());
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->driver, driver) << name;
    EXPECT_EQ(found->device, std::string("/dev/") + name);
  }
}

TEST(BlockDevice, ScsiDiskAndNamesWithSlashes) {
  const TempTree tree;
  add_disk(tree, "8:0", "pci/block/sda", "sd");
  EXPECT_EQ(read_block_device(8, 0, tree.root())->driver, "sd");
  add_disk(tree, "104:0", "pci/block/cciss!c0d0", "cciss");
  EXPECT_EQ(read_block_device(104, 0, tree.root())->device, "/dev/cciss/c0d0");
}

TEST(BlockDevice, NoDeviceIsNoAnswer) {
  const TempTree tree;
  EXPECT_FALSE(read_block_device(0, 42, tree.root()));
}

}  // namespace
}  // namespace straightway::os
