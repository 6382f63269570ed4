#pragma once
// Every key of cufile.json: its name, kind, default, range, environment variable, and what becomes
// of it here.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "straightway/result.hpp"
#include "straightway/settings.hpp"

namespace straightway::cufile {

enum class Key : std::uint8_t {
  logging_dir,
  logging_level,
  logging_max_file_size_mb,
  profile_nvtx,
  profile_cufile_stats,
  max_io_queue_depth,
  max_io_threads,
  parallel_io,
  min_io_threshold_size_kb,
  max_request_parallelism,
  max_direct_io_size_kb,
  max_device_cache_size_kb,
  per_buffer_cache_size_kb,
  gpu_bounce_slab_size_kb,
  gpu_bounce_slab_count,
  max_device_pinned_mem_size_kb,
  posix_pool_slab_size_kb,
  posix_pool_slab_count,
  use_poll_mode,
  poll_mode_max_size_kb,
  allow_compat_mode,
  force_compat_mode,
  use_pci_p2pdma,
  gds_rdma_write_support,
  io_batchsize,
  max_batch_io_timeout_msecs,
  io_priority,
  force_odirect_mode,
  prefer_iouring,
  allow_system_memory,
  vanilla_posix_io_mode,
  gds_fallback_io,
  compat_odirect_unaligned_read_split,
  compat_odirect_unaligned_read_split_min_size_kb,
  rdma_dev_addr_list,
  rdma_load_balancing_policy,
  rdma_top_n_ranks,
  rdma_transport_type,
  rdma_dynamic_routing,
  rdma_dynamic_routing_order,
  rdma_peer_type,
  rdma_dc_key,
  rdma_access_mask,
  rdma_multipath_enabled,
  max_backup_devices,
  io_retry_count,
  allow_rdma_token_reset,
  posix_unaligned_writes,
  lustre_posix_gds_min_kb,
  beegfs_posix_gds_min_kb,
  scatefs_posix_gds_min_kb,
  lustre_use_pci_p2pdma,
  beegfs_use_pci_p2pdma,
  scatefs_use_pci_p2pdma,
  nfs_use_pci_p2pdma,
  gpfs_use_pci_p2pdma,
  virtiofs_use_pci_p2pdma,
  lustre_rdma_dev_addr_list,
  beegfs_rdma_dev_addr_list,
  scatefs_rdma_dev_addr_list,
  nfs_rdma_dev_addr_list,
  gpfs_rdma_dev_addr_list,
  weka_rdma_dev_addr_list,
  lustre_mount_table,
  beegfs_mount_table,
  scatefs_mount_table,
  nfs_mount_table,
  gpfs_mount_table,
  weka_mount_table,
  weka_rdma_write_support,
  gpfs_gds_write_support,
  gpfs_gds_async_support,
  nvme_use_pci_p2pdma,
  nvmeof_use_pci_p2pdma,
  raid_use_pci_p2pdma,
  raid1_use_pci_p2pdma,
  raid10_use_pci_p2pdma,
  denylist_drivers,
  denylist_devices,
  denylist_mounts,
  denylist_filesystems,
  api_check_aggressive,
  skip_topology_detection,
  stream_memops_bypass,
  enable_static_routing,
  static_routing_filepath,
  rdma_token_reset_timeout_secs,
  sparse_min_p2pdma_threshold_kb,
  sparse_p2p_compat_enable,
};
inline constexpr std::size_t key_count =
    static_cast<std::size_t>(Key::sparse_p2p_compat_enable) + 1;

using Numbers = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;
// Tables (mount_table) are kept as the names of their entries.
using KeyValue = std::variant<bool, std::int64_t, std::string, Numbers, Texts>;

// What becomes of a value that is not the default.
enum class Effect : std::uint8_t {
  acts,      // as documented
  counts,    // cuts requests and moves counters; which way the bytes move is Straightway's
  ours,      // Straightway's own settings decide what it would
  vendor,    // only where the vendor's library does the direct I/O, which reads the file itself
  no_cause,  // nothing here that it could change
};

struct KeyInfo {
  Key key;
  std::string_view section;  // "properties", "fs.lustre"
  std::string_view name;
  std::string_view alias;  // another name of it, with its section, or empty
  const char* variable;    // or null
  KeyValue standard;       // that of the shipped file
  std::int64_t least = 0;  // of numbers, and of the numbers of lists
  std::int64_t most = 0;
  std::int64_t step = 1;
  Effect effect = Effect::acts;
  std::string_view words = {};  // the allowed ones, " A B C ", or empty: any text

  std::string full_name() const;  // "properties.io_batchsize"
};

const KeyInfo& info(Key key);
std::span<const KeyInfo> all_keys();

// Why the value does not fit the key ("it must be 64 to 16384, a multiple of 64"), or empty.
std::string misfit(const KeyInfo& key, const KeyValue& value);
// "it must be a list of texts"
std::string wrong_kind(const KeyInfo& key);
std::string to_string(const KeyValue& value);
// The value of an environment variable.
Result<KeyValue> parse_variable(const KeyInfo& key, std::string_view text);

}  // namespace straightway::cufile
