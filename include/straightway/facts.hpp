#pragma once
// What is true of this file, this memory and this machine, as read from the system (src/os).
// Values; planning takes them and looks at nothing else.

#include <cstdint>
#include <string>

#include "straightway/route.hpp"

namespace straightway {

// Read at open; size_bytes is read again for each request.
struct FileFacts {
  std::string path;        // as the user gave it; "fd 7" where only a descriptor is known
  std::string filesystem;  // "ext4", "tmpfs", "overlay", "nfs4", ... or "unknown"
  std::string mount_point;
  std::string device;         // "/dev/vda", or empty where there is no block device
  std::string device_driver;  // "virtio-blk", "nvme", "device-mapper", "md", "loop", ... or empty
  bool is_network = false;
  bool is_block_device = false;
  std::uint32_t direct_offset_align_bytes = 0;  // statx DIOALIGN, else probed; 0: no O_DIRECT
  std::uint32_t direct_memory_align_bytes = 0;
  bool dontcache = false;  // the file system takes reads that leave nothing cached (RWF_DONTCACHE)
  // What is known of the vendor's cuFile library with it: the code (CUfileOpError, or errno) by
  // which it refused the file or a transfer, 0: none; and whether it copied in silence.
  std::int32_t vendor_code = 0;
  bool vendor_copies = false;
  bool operator==(const FileFacts&) const = default;
};

// Read once per Context.
struct MachineFacts {
  std::uint32_t page_bytes = 4096;
  std::uint32_t cpus = 1;        // by affinity and cgroup quota
  std::uint32_t quota_cpus = 0;  // of the cgroup, rounded up; 0: none
  bool cuda_driver = false;      // libcuda.so.1 loads and cuInit succeeded
  std::int32_t cuda_devices = 0;
  std::string cuda_why_not;     // "libcuda.so.1 not found", or empty
  bool cuda_simulated = false;  // the fake driver of the tests answers
  bool nvfs_loaded = false;     // /proc/driver/nvidia-fs
  std::string nvfs_version;     // "2.28.4", or empty
  bool nvfs_nodes = false;      // /dev/nvidia-fs0, for this process
  bool vendor_library = false;  // a libcufile.so.0 that is not ours was found
  std::string vendor_path;      // where; absolute
  // Once it was loaded, which the first transfer does that could use it.
  std::int32_t vendor_version = 0;  // 1150 is 1.15; 0: not loaded
  std::string vendor_why_not;       // why no direct path goes through it, or empty
  bool vendor_cuts = false;         // it was open before us: it cuts requests by its own settings
  bool run_udev = false;            // /run/udev is a directory
  bool wsl = false;
  bool p2pdma_pages = false;  // the kernel publishes pages of a GPU of NVIDIA's, as /sys shows it
  bool uring = false;         // io_uring answers
  std::string uring_why_not;  // "io_uring_setup: Operation not permitted", or empty
  std::string kernel;         // uname -r
  // Bit index(route): this build has a transport for it. p2pdma: for CUDA memory.
  std::uint8_t routes_built = (1U << index(Route::nvfs)) | (1U << index(Route::direct_host)) |
                              (1U << index(Route::pinned_cache)) | (1U << index(Route::staged)) |
                              (1U << index(Route::buffered));
  bool operator==(const MachineFacts&) const = default;
};

// What the block devices under a file do with published device memory, as far as that is known of
// their drivers.
enum class PeerStorage : std::uint8_t { unknown, takes, refuses };
// How a drive reaches another PCI device: below one switch, or through the host's bridge, which
// some processors and bridges do not forward.
enum class PeerBridge : std::uint8_t { unknown, one_switch, host_bridge };
// What became of the one block that is moved before all others.
enum class PeerTrial : std::uint8_t { untried, passed, refused, data_lost, impossible };

// What is true of the way between a file's storage and the published memory of a PCI device.
struct PeerFacts {
  std::string device;      // PCI address, "0000:02:00.0"
  bool published = false;  // the kernel publishes its memory (sysfs folder p2pmem)
  PeerStorage storage = PeerStorage::unknown;
  PeerBridge bridge = PeerBridge::unknown;
  PeerTrial read_trial = PeerTrial::untried;
  PeerTrial write_trial = PeerTrial::untried;
  std::int32_t trial_code = 0;  // errno of a trial that was refused
  bool holes = false;           // this read's range has some; explain does not look
  bool operator==(const PeerFacts&) const = default;
};
const char* to_string(PeerStorage storage);
const char* to_string(PeerBridge bridge);
const char* to_string(PeerTrial trial);

// A range of memory of one space, found from the pointer.
struct MemoryRange {
  SpaceKind space = SpaceKind::host;
  std::int32_t device = -1;  // CUDA ordinal; -1 for host and peer memory
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  bool operator==(const MemoryRange&) const = default;
};

struct FileRange {
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  bool operator==(const FileRange&) const = default;
};

}  // namespace straightway
