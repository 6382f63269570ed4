#pragma once
// What the kernel module nvidia-fs says of itself in /proc/driver/nvidia-fs.

#include <cstdint>
#include <optional>
#include <string>

namespace straightway::os {

// Of one direction, since the module was loaded or its counters were set to zero.
struct NvfsCounter {
  std::uint64_t calls = 0;
  std::uint64_t failed = 0;  // and refused
  std::uint64_t mib = 0;     // whole MiB
  bool operator==(const NvfsCounter&) const = default;
};

struct NvfsStats {
  std::string version;   // "2.28.4", or empty
  bool counted = false;  // reads and writes are counted (module parameter rw_stats_enabled)
  NvfsCounter reads;
  NvfsCounter writes;
  bool operator==(const NvfsStats&) const = default;
};

// nullopt where the file is not there or not for this user. root: a prefix in tests.
std::optional<NvfsStats> read_nvfs_stats(const std::string& root = "");

// "2.28.4" from the statistics, else "2.28" from the file that has it alone, else "".
std::string nvfs_version(const std::string& root = "");

}  // namespace straightway::os
