#include <gtest/gtest.h>

#include "os/facts.hpp"
#include "tests/os/temp_tree.hpp"

namespace straightway::os {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

void write_memory(const TempTree& tree) {
  tree.write("proc/meminfo",
             "MemTotal:       131072000 kB\nMemFree:          1048576 kB\n"
             "MemAvailable:   104857600 kB\nBuffers:              10 kB\n");
}

// MemFree leaves out what the kernel can take back.
TEST(SpareMemory, G4_CountsWhatCanBeHadNotWhatIsFree) {
  const TempTree tree;
  write_memory(tree);
  EXPECT_EQ(spare_memory_bytes(tree.root()), 100 * gib);
}

TEST(SpareMemory, TheTightestGroupDecidesAndItsCacheIsToSpare) {
  const TempTree tree;
  write_memory(tree);
  tree.write("proc/self/cgroup", "0::/a/b\n");
  tree.write("sys/fs/cgroup/a/b/memory.max", "max\n");
  tree.write("sys/fs/cgroup/a/memory.max", std::to_string(10 * gib) + "\n");
  tree.write("sys/fs/cgroup/a/memory.current", std::to_string(9 * gib) + "\n");
  tree.write("sys/fs/cgroup/a/memory.stat", "anon 1\nfile 9\ninactive_file " +
                                                std::to_string(5 * gib) + "\nactive_file " +
                                                std::to_string(2 * gib) + "\n");
  EXPECT_EQ(spare_memory_bytes(tree.root()), 8 * gib);
}

TEST(SpareMemory, TheOlderTreeIsReadToo) {
  const TempTree tree;
  write_memory(tree);
  tree.write("proc/self/cgroup", "7:cpu,cpuacct:/x\n5:memory:/jobs\n");
  tree.write("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", std::to_string(4 * gib));
  tree.write("sys/fs/cgroup/memory/jobs/memory.usage_in_bytes", std::to_string(3 * gib));
  tree.write("sys/fs/cgroup/memory/jobs/memory.stat",
             "inactive_file 7\ntotal_inactive_file " + std::to_string(gib) + "\n");
  EXPECT_EQ(spare_memory_bytes(tree.root()), 2 * gib);
}

TEST(SpareMemory, AFullGroupHasNothingAndAStrangeMachineSaysNothing) {
  const TempTree tree;
  EXPECT_EQ(spare_memory_bytes(tree.root()), std::nullopt);
  write_memory(tree);
  tree.write("proc/self/cgroup", "0::/\n");
  tree.write("sys/fs/cgroup/memory.max", "4096");
  tree.write("sys/fs/cgroup/memory.current", "8192");
  EXPECT_EQ(spare_memory_bytes(tree.root()), 0U);
  EXPECT_GT(spare_memory_bytes().value_or(0), 0U);  // this machine
}

}  // namespace
}  // namespace straightway::os
