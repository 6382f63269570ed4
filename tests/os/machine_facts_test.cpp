#include "os/machine_facts.hpp"

#include <gtest/gtest.h>

#include "os/facts.hpp"
#include "tests/os/temp_tree.hpp"

namespace straightway::os {
namespace {

TEST(MachineFacts, E2_WslString) {
  for (const char* release : {"5.15.153.1-microsoft-standard-WSL2\n", "4.4.0-19041-Microsoft\n"}) {
    const TempTree tree;
    tree.write("proc/sys/kernel/osrelease", release);
    EXPECT_TRUE(read_machine_facts(tree.root()).wsl) << release;
  }
  const TempTree tree;
  tree.write("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  const MachineFacts facts = read_machine_facts(tree.root());
  EXPECT_FALSE(facts.wsl);
  EXPECT_EQ(facts.kernel, "6.1.0-18-amd64");
}

TEST(MachineFacts, NvidiaFsUdevAndVendorLibraryAreSeen) {
  const TempTree tree;
  const MachineFacts bare = read_machine_facts(tree.root());
  EXPECT_FALSE(bare.nvfs_loaded);
  EXPECT_FALSE(bare.run_udev);
  EXPECT_FALSE(bare.vendor_library);
  tree.write("proc/driver/nvidia-fs/version", "version: 2.28\n");
  tree.write("dev/nvidia-fs0", "");
  tree.folder("run/udev");
  tree.write("usr/local/cuda-12.8/lib64/libcufile.so.0",
             "\x7f"
             "ELF and so on");
  const MachineFacts full = read_machine_facts(tree.root());
  EXPECT_TRUE(full.nvfs_loaded);
  EXPECT_TRUE(full.run_udev);
  EXPECT_EQ(full.nvfs_version, "2.28");
  EXPECT_TRUE(full.nvfs_nodes);
  EXPECT_TRUE(full.vendor_library);
  EXPECT_EQ(full.vendor_path, tree.root() + "/usr/local/cuda-12.8/lib64/libcufile.so.0");
  EXPECT_FALSE(read_machine_facts(tree.root(), "none").vendor_library);
  EXPECT_EQ(read_machine_facts("", full.vendor_path).vendor_path, full.vendor_path);
  EXPECT_FALSE(read_machine_facts("", tree.root() + "/nowhere").vendor_library);
}

TEST(MachineFacts, OnlyAGpuOfNvidiaWithPublishedMemoryHasPages) {
  const TempTree tree;
  const auto has_pages = [&] { return has_gpu_pages(tree.root(), "6.12.9"); };
  EXPECT_FALSE(has_pages());  // no /sys
  const std::string devices = "sys/bus/pci/devices/";
  tree.write(devices + "0000:00:03.0/vendor", "0x144d\n");
  tree.write(devices + "0000:00:03.0/p2pmem/size", "1048576\n");  // a drive's
  tree.write(devices + "0000:17:00.0/vendor", "0x10de\n");
  EXPECT_FALSE(has_pages());
  const std::string size = devices + "0000:17:00.0/p2pmem/size";
  tree.write(size, "0\n");
  EXPECT_FALSE(has_pages());
  tree.write(size, "137438953472\n");
  EXPECT_TRUE(has_pages());
  tree.write("boot/config-6.12.9", "CONFIG_PCI=y\n# CONFIG_PCI_P2PDMA is not set\n");
  EXPECT_FALSE(has_pages());
  tree.write("boot/config-6.12.9", "CONFIG_PCI=y\nCONFIG_PCI_P2PDMA=y\n");
  EXPECT_TRUE(has_pages());
}

TEST(MachineFacts, AFileInPlaceOfRunUdevIsNotIt) {
  const TempTree tree;
  tree.write("run/udev", "");
  EXPECT_FALSE(read_machine_facts(tree.root()).run_udev);
}

TEST(MachineFacts, UringAnswersOrSaysWhyNot) {
  const MachineFacts facts = read_machine_facts("");
  EXPECT_NE(facts.uring, !facts.uring_why_not.empty());
  if (facts.uring) return;
  EXPECT_TRUE(facts.uring_why_not.starts_with("io_uring_setup: E")) << facts.uring_why_not;
}

TEST(MachineFacts, TheQuotaBoundsTheCpus) {
  const TempTree tree;
  tree.write("proc/self/cgroup", "0::/job\n");
  tree.write("sys/fs/cgroup/job/cpu.max", "50000 100000\n");
  EXPECT_EQ(read_machine_facts(tree.root()).cpus, 1U);
  const TempTree free;
  EXPECT_GE(read_machine_facts(free.root()).cpus, 1U);
}

TEST(QuotaCpus, UnifiedTakesTheTightestUpTheTree) {
  const TempTree tree;
  tree.write("proc/self/cgroup", "0::/outer/inner\n");
  tree.write("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  EXPECT_EQ(quota_cpus(tree.root()), std::nullopt);
  tree.write("sys/fs/cgroup/outer/cpu.max", "250000 100000\n");
  EXPECT_EQ(quota_cpus(tree.root()), 3U) << "2.5 CPUs round up";
  tree.write("sys/fs/cgroup/outer/inner/cpu.max", "800000 100000\n");
  EXPECT_EQ(quota_cpus(tree.root()), 3U);
}

TEST(QuotaCpus, VersionOne) {
  const TempTree tree;
  tree.write("proc/self/cgroup", "4:memory:/m\n3:cpu,cpuacct:/job\n0::/\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota_cpus(tree.root()), std::nullopt);
  tree.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "400000\n");
  EXPECT_EQ(quota_cpus(tree.root()), 4U);
}

TEST(QuotaCpus, AContainerSeesItsOwnGroupAsTheRoot) {
  const TempTree tree;
  tree.write("proc/self/cgroup", "0::/docker/0123\n");
  tree.write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota_cpus(tree.root()), 2U);
}

TEST(QuotaCpus, NonsenseIsNoQuota) {
  const TempTree tree;
  tree.write("proc/self/cgroup", "0::/job\n:::\nx\n\n");
  tree.write("sys/fs/cgroup/job/cpu.max", "100000 0\n");
  EXPECT_EQ(quota_cpus(tree.root()), std::nullopt);
}

}  // namespace
}  // namespace straightway::os
