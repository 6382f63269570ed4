#include "os/peer_facts.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/os/temp_tree.hpp"

namespace straightway::os {
namespace {

constexpr const char* memory_device = "0000:03:00.0";
const std::string below_switch = "../../devices/pci0000:00/0000:00:03.0/0000:01:00.0/";
const std::string other_port = "../../devices/pci0000:00/0000:00:04.0/";

class PeerFactsTest : public testing::Test {
 protected:
  PeerFactsTest() {
    tree.folder("sys/devices/pci0000:00/0000:00:03.0/0000:01:00.0/0000:03:00.0/p2pmem");
    tree.link(std::string("sys/bus/pci/devices/") + memory_device,
              "../" + below_switch + memory_device);
  }
  void add_disk(const std::string& number, const std::string& folder) const {
    tree.folder("sys/dev/block/" + folder);
    tree.link("sys/dev/block/" + number, folder);
  }
  PeerFacts facts(unsigned first, unsigned second, const std::string& filesystem = "ext4") const {
    return read_peer_facts({makedev(first, second), 1}, filesystem, memory_device, tree.root());
  }
  TempTree tree;
};

TEST_F(PeerFactsTest, ADriveBelowTheSameSwitch) {
  add_disk("259:0", below_switch + "0000:02:01.0/0000:04:00.0/nvme/nvme0/nvme0n1");
  const PeerFacts found = facts(259, 0);
  EXPECT_EQ(found.device, memory_device);
  EXPECT_TRUE(found.published);
  EXPECT_EQ(found.storage, PeerStorage::takes);
  EXPECT_EQ(found.bridge, PeerBridge::one_switch);
  EXPECT_EQ(found.read_trial, PeerTrial::untried);
}

TEST_F(PeerFactsTest, ADriveAtAnotherPortOfTheHost) {
  add_disk("259:0", other_port + "0000:04:00.0/nvme/nvme0/nvme0n1");
  EXPECT_EQ(facts(259, 0).bridge, PeerBridge::host_bridge);
  EXPECT_EQ(facts(259, 0).storage, PeerStorage::takes);
}

TEST_F(PeerFactsTest, WhatPublishesNothing) {
  tree.folder("sys/bus/pci/devices/0000:05:00.0");
  EXPECT_FALSE(publishes_memory("0000:05:00.0", tree.root()));
  EXPECT_FALSE(publishes_memory("0000:06:00.0", tree.root()));
  EXPECT_FALSE(publishes_memory("../0000:03:00.0", tree.root()));
}

TEST_F(PeerFactsTest, StacksThatRefuse) {
  add_disk("253:0", "../../devices/virtual/block/dm-0");
  add_disk("7:0", "../../devices/virtual/block/loop0");
  add_disk("254:0", "../../devices/pci0000:00/0000:00:05.0/virtio2/block/vda");
  tree.link("sys/devices/pci0000:00/0000:00:05.0/virtio2/block/vda/device/driver", "virtio_blk");
  for (const unsigned device : {253U, 7U, 254U}) {
    EXPECT_EQ(facts(device, 0).storage, PeerStorage::refuses) << device;
  }
  EXPECT_EQ(facts(200, 0).storage, PeerStorage::unknown);
}

// A head of several paths has no place on the bus; whether it passes peer memory on is tried.
TEST_F(PeerFactsTest, NvmeMultipathIsUnknown) {
  add_disk("259:5", "../../devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1");
  EXPECT_EQ(facts(259, 5).storage, PeerStorage::unknown);
  EXPECT_EQ(facts(259, 5).bridge, PeerBridge::unknown);
}

TEST_F(PeerFactsTest, AnArrayIsWhatItsMembersAre) {
  add_disk("259:0", below_switch + "0000:02:01.0/0000:04:00.0/nvme/nvme0/nvme0n1");
  add_disk("259:1", below_switch + "0000:02:02.0/0000:05:00.0/nvme/nvme1/nvme1n1");
  add_disk("9:0", "../../devices/virtual/block/md0");
  tree.write("sys/devices/virtual/block/md0/slaves/nvme0n1/dev", "259:0\n");
  tree.write("sys/devices/virtual/block/md0/slaves/nvme1n1/dev", "259:1\n");
  EXPECT_EQ(facts(9, 0).storage, PeerStorage::unknown);
  EXPECT_EQ(facts(9, 0).bridge, PeerBridge::one_switch);
  add_disk("7:0", "../../devices/virtual/block/loop0");
  tree.write("sys/devices/virtual/block/md0/slaves/loop0/dev", "7:0\n");
  EXPECT_EQ(facts(9, 0).storage, PeerStorage::refuses);
}

TEST_F(PeerFactsTest, AnOverlayIsWhatItsLayersAre) {
  struct stat here{};
  ::stat(tree.root().c_str(), &here);
  const auto number = std::to_string(major(here.st_dev)) + ":" + std::to_string(minor(here.st_dev));
  add_disk(number, below_switch + "0000:02:01.0/0000:04:00.0/nvme/nvme0/nvme0n1");
  const auto mount = [&](const std::string& options) {
    tree.write("proc/self/mountinfo", "40 1 0:77 / /o rw - overlay o rw," + options + "\n");
  };
  mount("lowerdir=/nowhere/at/all,upperdir=" + tree.root());
  EXPECT_EQ(facts(0, 77, "overlay").storage, PeerStorage::unknown);
  mount("lowerdir=" + tree.root() + "\\:x");
  EXPECT_EQ(facts(0, 77, "overlay").storage, PeerStorage::unknown);
  mount("lowerdir=/proc");  // which hands no memory on
  EXPECT_EQ(facts(0, 77, "overlay").storage, PeerStorage::refuses);
  EXPECT_EQ(facts(0, 78, "overlay").storage, PeerStorage::unknown);  // another one
  mount("lowerdir=" + tree.root() + ":" + tree.root());
  // By what the temporary folder lies on.
  EXPECT_NE(facts(0, 77, "overlay").storage, PeerStorage::unknown);
}

TEST_F(PeerFactsTest, TheDeviceComesFromThePointer) {
  tree.write("proc/self/maps",
             "7f0000000000-7f0000200000 rw-s 00000000 00:15 12   "
             "/sys/devices/pci0000:00/0000:00:03.0/0000:03:00.0/p2pmem/allocate\n"
             "7f0000200000-7f0000300000 rw-p 00000000 00:00 0\n"
             "7f0000400000-7f0000500000 rw-s 00000000 00:15 12   /tmp/p2pmem/allocate\n");
  const auto device = [&](std::uint64_t address, std::uint64_t size) {
    return device_of_mapping(address, size, tree.root());
  };
  EXPECT_EQ(device(0x7f0000000000, 0x200000).value(), memory_device);
  EXPECT_EQ(device(0x7f0000001000, 1).value(), memory_device);
  EXPECT_NE(device(0x7f0000001000, 0x200000).error().why.find("2093056"), std::string::npos);
  EXPECT_FALSE(device(0x7f0000200000, 1));
  EXPECT_FALSE(device(0x7f0000400000, 1));
  EXPECT_FALSE(device(0x7e0000000000, 1));
}

TEST(PeerFacts, PciAddresses) {
  for (const char* good : {"0000:02:00.0", "10000:e1:00.7", "abcd:0f:1f.1"}) {
    EXPECT_TRUE(is_pci_address(good)) << good;
  }
  for (const char* bad : {"", "02:00.0", "0000:02:00", "0000:02:00.0/", "../../:02:00.0",
                          "0000:2:0.0", "0000:02:00.00", "000g:02:00.0"}) {
    EXPECT_FALSE(is_pci_address(bad)) << bad;
  }
}

TEST(PeerFacts, StorageOfADescriptor) {
  const TempTree tree;
  const auto a = tree.write("a", "x");
  const auto b = tree.write("b", "x");
  const int first = ::open(a.c_str(), O_RDONLY | O_CLOEXEC);
  const int second = ::open(b.c_str(), O_RDONLY | O_CLOEXEC);
  const int other = ::memfd_create("other", MFD_CLOEXEC);
  struct stat status{};
  ::fstat(first, &status);
  EXPECT_EQ(file_storage(first).device, status.st_dev);
  EXPECT_EQ(file_storage(first), file_storage(second));
  EXPECT_NE(file_storage(first), file_storage(other));
  for (const int fd : {first, second, other}) ::close(fd);
}

}  // namespace
}  // namespace straightway::os
