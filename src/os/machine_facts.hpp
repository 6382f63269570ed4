#pragma once
// The pieces of MachineFacts that take some finding.

#include <cstdint>
#include <optional>
#include <string>

namespace straightway::os {

// CPUs that this process may use: its affinity, within the cgroup's quota.
struct UsableCpus {
  std::uint32_t count = 1;
  std::uint32_t quota = 0;  // 0: there is none
};
UsableCpus usable_cpus(const std::string& root = "");

// How many CPUs the cgroup's quota allows, rounded up; nullopt where there is no quota. The
// tightest of the group and those above it counts.
std::optional<std::uint32_t> quota_cpus(const std::string& root);

// Whether the kernel publishes memory of a GPU of NVIDIA, as /sys shows it, and its configuration
// does not say that it cannot. Looks at every PCI device. release: MachineFacts::kernel.
bool has_gpu_pages(const std::string& root, const std::string& release);

// Whether a file is a libcufile.so.0 that is not Straightway's own, as far as its bytes tell.
bool is_vendor_library(const std::string& path);

// The path of a libcufile.so.0 that is not Straightway's own, or "". Looks where the loader would,
// as far as that can be told without loading it: what an RPATH of the program adds, and whether
// every symbol is there, stays unknown. ld_library_path: that variable's value.
std::string find_vendor_library(const std::string& ld_library_path, const std::string& root);

}  // namespace straightway::os
