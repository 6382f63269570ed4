#pragma once
// What O_DIRECT wants of offsets and addresses.

#include <cstdint>
#include <optional>
#include <string_view>

namespace straightway::os {

struct DirectAlignment {
  std::uint32_t offset_bytes = 0;  // 0: no O_DIRECT
  std::uint32_t memory_bytes = 0;
  bool operator==(const DirectAlignment&) const = default;
};

struct DirectWitnesses {
  std::optional<DirectAlignment> statx;   // the kernel's own answer (Linux 6.1), where it gives one
  std::uint32_t logical_block_bytes = 0;  // of the device; 0: no device
  bool opens_direct = false;              // an O_DIRECT open of the same file succeeds
  std::uint32_t page_bytes = 4096;
};

// Pure. The kernel's answer counts; else the device's block size; else, where O_DIRECT opens
// though no device is in sight (NFS, overlay), a page. Nothing on file systems in memory: they
// accept O_DIRECT without moving by it.
DirectAlignment choose_direct_alignment(std::string_view filesystem,
                                        const DirectWitnesses& witnesses);

}  // namespace straightway::os
