#pragma once
// Reads what is true of a file and of this machine. Works as an ordinary user; what it cannot see
// is left at its "unknown" value.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "straightway/facts.hpp"
#include "straightway/result.hpp"

namespace straightway::os {

// Of an open descriptor. Follows no path twice: everything but the name comes from fd. root is a
// prefix for /proc and /sys in tests ("" in life).
FileFacts read_file_facts(int fd, const std::string& path, const std::string& root = "");

// Everything but the cuda_* fields, which the cuda space fills, what only loading the vendor's
// library tells, and p2pdma_pages (has_gpu_pages). vendor_library: as the setting.
MachineFacts read_machine_facts(const std::string& root = "",
                                const std::string& vendor_library = "");

// Of a regular file: st_size; of a block device: its capacity.
Result<std::uint64_t> file_size(int fd, const std::string& path);

// Page-cache residency by cachestat, else mincore where that can be believed (owner or writer).
struct Residency {
  bool known = false;
  std::uint64_t resident_bytes = 0;
  std::uint64_t dirty_bytes = 0;
  const char* witness = "";  // "cachestat", "mincore"
  std::string why_unknown;
};
Residency read_residency(int fd, std::uint64_t offset, std::uint64_t size_bytes);

// What the machine (MemAvailable: with what the kernel can reclaim) and every cgroup above this
// process have to spare; nullopt where the machine does not say.
std::optional<std::uint64_t> spare_memory_bytes(const std::string& root = "");

// "EIO: Input/output error"
std::string errno_text(int code);
ErrorKind errno_kind(int code);

}  // namespace straightway::os
