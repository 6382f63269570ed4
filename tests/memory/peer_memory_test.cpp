#include "memory/peer_memory.hpp"

#include <gtest/gtest.h>

#include "tests/os/temp_tree.hpp"

namespace straightway::memory {
namespace {

std::shared_ptr<const PeerMapping> mapping(std::uint64_t address, std::uint64_t size_bytes) {
  return std::make_shared<const PeerMapping>("0000:03:00.0", address, size_bytes);
}

TEST(PeerMappings, AreFoundFromAnyPointerIntoThem) {
  PeerMappings known;
  EXPECT_EQ(known.find(0x1000, 1).value(), nullptr);
  const auto first = mapping(0x1000, 0x1000);
  ASSERT_TRUE(known.add(first));
  EXPECT_EQ(known.find(0x1000, 0x1000).value(), first);
  EXPECT_EQ(known.find(0x1fff, 1).value(), first);
  EXPECT_EQ(known.find(0x2000, 1).value(), nullptr);
  EXPECT_EQ(known.find(0xfff, 1).value(), nullptr);
  EXPECT_EQ(known.find(0x1800, 0x801).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(known.find(0x1800, UINT64_MAX).error().kind, ErrorKind::invalid_argument);
}

TEST(PeerMappings, OverlapIsRefusedAndRemovalForgets) {
  PeerMappings known;
  const auto first = mapping(0x1000, 0x1000);
  ASSERT_TRUE(known.add(first));
  EXPECT_FALSE(known.add(mapping(0x1800, 0x1000)));
  EXPECT_TRUE(known.add(mapping(0x2000, 0x1000)));
  known.remove(first.get());
  EXPECT_EQ(known.find(0x1000, 1).value(), nullptr);
  EXPECT_TRUE(known.add(mapping(0x1800, 0x800)));
}

TEST(PeerMapping, WhatCannotBeAllocatedIsSaid) {
  const os::TempTree tree;
  const auto refusal = [&](const std::string& device) {
    return PeerMapping::allocate(device, 4096, tree.root()).error();
  };
  EXPECT_EQ(refusal("0000:03:00.0").kind, ErrorKind::not_found);
  EXPECT_EQ(refusal("../../etc").kind, ErrorKind::not_found);
  const std::string folder = "sys/bus/pci/devices/0000:03:00.0";
  tree.folder(folder);
  EXPECT_EQ(refusal("0000:03:00.0").kind, ErrorKind::unsupported);
  EXPECT_NE(refusal("0000:03:00.0").advice.find("CONFIG_PCI_P2PDMA"), std::string::npos);
  tree.folder(folder + "/p2pmem");
  EXPECT_EQ(refusal("0000:03:00.0").kind, ErrorKind::not_found);  // no file to map
  tree.write(folder + "/class", "0x030200\n");
  EXPECT_EQ(refusal("0000:03:00.0").kind, ErrorKind::unsupported);  // a GPU
  EXPECT_NE(refusal("0000:03:00.0").why.find("GPU"), std::string::npos);
}

// An ordinary file stands for what a driver lends.
TEST(PeerMapping, IsUnmappedWithItsLastUser) {
  const os::TempTree tree;
  const std::string pool = "sys/bus/pci/devices/0000:03:00.0/p2pmem/";
  tree.write(pool + "allocate", std::string(8192, '\0'));
  tree.write(pool + "available", "8192\n");
  auto made = PeerMapping::allocate("0000:03:00.0", 5000, tree.root());
  ASSERT_TRUE(made) << made.error().message();
  auto* bytes = reinterpret_cast<volatile char*>((*made)->address());
  bytes[4999] = 7;
  EXPECT_EQ(bytes[4999], 7);
  EXPECT_EQ((*made)->size_bytes(), 5000U);
  const auto none = PeerMapping::allocate("0000:03:00.0", 0, tree.root());
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().why.find("8192 bytes are available"), std::string::npos);
}

}  // namespace
}  // namespace straightway::memory
