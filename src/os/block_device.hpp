#pragma once
// The block device under a file, from /sys/dev/block.

#include <cstdint>
#include <optional>
#include <string>

namespace straightway::os {

struct BlockDevice {
  std::string device;  // the whole disk, also where the file lies on a partition: "/dev/vda"
  std::string driver;  // "virtio-blk", "nvme", "nvme-tcp", "sd", "device-mapper", "md", ...
  std::uint32_t logical_block_bytes = 0;  // 0: not known
};

// root is a prefix for /sys in tests. Nullopt where the number is not a block device's.
std::optional<BlockDevice> read_block_device(std::uint32_t device_major, std::uint32_t device_minor,
                                             const std::string& root);

}  // namespace straightway::os
