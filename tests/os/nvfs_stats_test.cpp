#include "os/nvfs_stats.hpp"

#include <gtest/gtest.h>

#include "tests/os/temp_tree.hpp"

namespace straightway::os {
namespace {

constexpr const char* path = "proc/driver/nvidia-fs/stats";

TEST(NvfsStats, CountersAndVersionAreRead) {
  const TempTree tree;
  tree.write(path,
             "GDS Version: 1.17.1.22\n"
             "NVFS statistics(ver: 4.0)\n"
             "NVFS Driver(version: 2.28.4)\n"
             "Mellanox PeerDirect Supported: True\n"
             "IO stats: Enabled, peer IO stats: Disabled\n"
             "Logging level: info\n\n"
             "Reads           : n=256 ok=255 err=1 readMiB=1024 io_state_err=0\n"
             "Reads           : Bandwidth(MiB/s)=7 Avg-Latency(usec)=9\n"
             "Sparse Reads    : n=4 io=5 holes=6 pages=7\n"
             "Writes          : n=3 ok=3 err=0 writeMiB=12 io_state_err=0 pg-cache=0\n"
             "Ops             : Read=0 Write=0 BatchIO=0\n");
  const auto stats = read_nvfs_stats(tree.root());
  ASSERT_TRUE(stats);
  EXPECT_EQ(*stats, (NvfsStats{"2.28.4", true, {256, 1, 1024}, {3, 0, 12}}));
  EXPECT_EQ(nvfs_version(tree.root()), "2.28.4");
}

TEST(NvfsStats, WithoutCountingNothingIsMadeUp) {
  const TempTree tree;
  tree.write(path,
             "NVFS Driver(version: 2.28.4)\n"
             "IO stats: Disabled, peer IO stats: Disabled\n"
             "Reads           : err=0 io_state_err=0\n"
             "Writes          : err=0 io_state_err=0 pg-cache=0 pg-cache-fail=0 pg-cache-eio=0\n");
  const auto stats = read_nvfs_stats(tree.root());
  ASSERT_TRUE(stats);
  EXPECT_FALSE(stats->counted);
}

TEST(NvfsStats, HostileTextIsNoNumber) {
  const TempTree tree;
  const std::string sound = "n=1 ok=1 err=0 readMiB=2 io_state_err=0";
  const auto counted = [&](const std::string& reads) {
    tree.write(path, "IO stats: Enabled, peer IO stats: Disabled\nReads : " + reads +
                         "\nWrites : n=3 ok=3 err=0 writeMiB=12 io_state_err=0\n");
    return read_nvfs_stats(tree.root())->counted;
  };
  EXPECT_TRUE(counted(sound));
  EXPECT_TRUE(counted("n=18446744073709551615 err=0 readMiB=18446744073709551615"));
  for (const char* hostile :
       {"", "n=", "n=99999999999999999999 err=0 readMiB=1", "n=-1 err=0 readMiB=1",
        "n=1 err=-1 readMiB=1", "n=1 err=99999999999999999999 readMiB=1", "n=1 readMiB=1",
        "n=1 err=0 readMiB=-1", "n=1x err=0 readMiB=1", "n=1 err=0 readMiB=1e9",
        "n=0x10 err=0 readMiB=1", "n=1 err=0 readMiB=", "n= 1 err= 0 readMiB= 1", "n=1 err=0"}) {
    EXPECT_FALSE(counted(hostile)) << hostile;
  }
  EXPECT_EQ(read_nvfs_stats(tree.root() + "/nowhere"), std::nullopt);
}

TEST(NvfsStats, ALineThatIsMissingIsNotCountedAsNought) {
  const TempTree tree;
  const std::string reads = "Reads : n=1 ok=1 err=0 readMiB=2 io_state_err=0\n";
  const std::string writes = "Writes : n=3 ok=3 err=0 writeMiB=12 io_state_err=0\n";
  const std::string enabled = "IO stats: Enabled, peer IO stats: Disabled\n";
  for (const auto& text : {reads + writes, enabled + reads, enabled + writes, enabled,
                           std::string(1 << 20, '\n'), std::string("Reads", 5)}) {
    tree.write(path, text);
    EXPECT_FALSE(read_nvfs_stats(tree.root())->counted) << text.substr(0, 99);
  }
}

TEST(NvfsStats, ARefusedTransferIsAFailedOne) {
  const TempTree tree;
  tree.write(path,
             "IO stats: Enabled, peer IO stats: Disabled\n"
             "Reads : n=9 ok=6 err=1 readMiB=2 io_state_err=2\n"
             "Writes : n=3 ok=3 err=0 writeMiB=12 io_state_err=0\n");
  EXPECT_EQ(read_nvfs_stats(tree.root())->reads, (NvfsCounter{9, 3, 2}));
}

TEST(NvfsStats, TheVersionStandsInAFileOfItsOwnToo) {
  const TempTree tree;
  EXPECT_EQ(nvfs_version(tree.root()), "");
  tree.write("proc/driver/nvidia-fs/version", "version: 2.28\n");
  EXPECT_EQ(nvfs_version(tree.root()), "2.28");
}

}  // namespace
}  // namespace straightway::os
