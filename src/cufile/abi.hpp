#pragma once
// The binary interface of libcufile.so.0 on LP64 machines, in declarations of our own. The numbers
// and places are facts of that interface; tests/cufile/vendor_header_check.cpp compares them with
// the vendor's header where it can be had.

#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace straightway::cufile::abi {

// CUfileOpError. 0 is success.
enum Code : std::int32_t {
  success = 0,
  driver_not_initialized = 5001,
  driver_invalid_props = 5002,
  driver_unsupported_limit = 5003,
  driver_closing = 5006,
  io_not_supported = 5008,
  cuda_driver_error = 5011,
  cuda_memory_type_invalid = 5013,
  cuda_pointer_range_error = 5014,
  invalid_mapping_size = 5016,
  invalid_mapping_range = 5017,
  invalid_file_type = 5018,
  invalid_file_open_flag = 5019,
  invalid_value = 5022,
  memory_already_registered = 5023,
  memory_not_registered = 5024,
  driver_already_open = 5026,
  handle_not_registered = 5027,
  handle_already_registered = 5028,
  internal_error = 5030,
  getnewfd_failed = 5031,
  batch_submit_failed = 5035,
  batch_full = 5037,
  async_not_supported = 5038,
  internal_batch_setup_error = 5039,
  internal_batch_submit_error = 5040,
  nomem_error = 5043,
  io_error = 5044,
  invalid_context_error = 5047,
};

// CUfileError_t
struct Error {
  std::int32_t code = success;
  std::int32_t cuda_code = 0;
};
static_assert(sizeof(Error) == 8);

// cufileRDMAInfo_t
struct RdmaInfo {
  std::int32_t version;
  std::int32_t description_length;
  const char* description;
};
static_assert(sizeof(RdmaInfo) == 16);

// CUfileFSOps_t: a file system in user space.
struct FileOperations {
  const char* (*filesystem_type)(const void* handle);
  int (*rdma_devices)(const void* handle, sockaddr** addresses);
  int (*rdma_priority)(const void* handle, char*, std::size_t, off_t, const sockaddr* address);
  ssize_t (*read)(const void* handle, char*, std::size_t, off_t, const RdmaInfo*);
  ssize_t (*write)(const void* handle, const char*, std::size_t, off_t, const RdmaInfo*);
};
static_assert(sizeof(FileOperations) == 40);

enum HandleType : std::int32_t { opaque_fd = 1, opaque_win32 = 2, userspace_fs = 3 };

// CUfileDescr_t
struct Descriptor {
  std::int32_t type;
  union {
    std::int32_t fd;
    void* pointer;
  };
  const FileOperations* operations;
};
static_assert(sizeof(Descriptor) == 24 && offsetof(Descriptor, fd) == 8);
static_assert(offsetof(Descriptor, operations) == 16);

// CUfileDrvProps_t
struct Properties {
  std::uint32_t major_version;
  std::uint32_t minor_version;
  std::size_t poll_threshold_kb;
  std::size_t max_direct_io_kb;
  std::uint32_t status_flags;
  std::uint32_t control_flags;
  std::uint32_t feature_flags;
  std::uint32_t max_device_cache_kb;
  std::uint32_t per_buffer_cache_kb;
  std::uint32_t max_pinned_kb;
  std::uint32_t max_batch_io_size;
  std::uint32_t max_batch_io_timeout_ms;
};
static_assert(sizeof(Properties) == 56 && offsetof(Properties, feature_flags) == 32);

// CUfileIOParams_t
struct BatchEntry {
  std::int32_t mode;
  void* memory;
  off_t file_offset;
  off_t memory_offset;
  std::size_t size;
  void* handle;
  std::int32_t opcode;
  void* cookie;
};
static_assert(sizeof(BatchEntry) == 64 && offsetof(BatchEntry, memory) == 8);
static_assert(offsetof(BatchEntry, handle) == 40 && offsetof(BatchEntry, cookie) == 56);

enum BatchMode : std::int32_t { batch_mode = 1 };
enum Opcode : std::int32_t { opcode_read = 0, opcode_write = 1 };
enum BatchStatus : std::int32_t { canceled = 8, complete = 0x10, failed = 0x40 };

// CUfileIOEvents_t
struct BatchEvent {
  void* cookie;
  std::int32_t status;
  std::size_t result;
};
static_assert(sizeof(BatchEvent) == 24 && offsetof(BatchEvent, result) == 16);

// CUfileIOVec_t
struct Piece {
  void* memory;
  std::size_t size;
};
static_assert(sizeof(Piece) == 16);

// CUFileSizeTConfigParameter_t, CUFileBoolConfigParameter_t, CUFileStringConfigParameter_t: how
// many each has.
inline constexpr int size_parameter_count = 12;
inline constexpr int bool_parameter_count = 14;
inline constexpr int string_parameter_count = 4;

// CUfileOpCounter_t
struct Counter {
  std::uint64_t ok;
  std::uint64_t err;
};

// CUfileStatsLevel1_t as from 1.19 on; before, it ended at readv.
struct Level1 {
  Counter read, write, handle_register, handle_deregister, buffer_register, buffer_deregister;
  std::uint64_t read_bytes, write_bytes, read_bytes_per_s, write_bytes_per_s;
  std::uint64_t read_latency_avg_us, write_latency_avg_us, read_ops_per_s, write_ops_per_s;
  std::uint64_t read_latency_sum_us, write_latency_sum_us;
  Counter batch_submit, batch_complete, batch_setup, batch_cancel, batch_destroy, batch_enqueued;
  Counter batch_posix_enqueued, batch_processed, batch_posix_processed, batch_nvfs_submit;
  Counter batch_p2p_submit, batch_aio_submit, batch_uring_submit, batch_mixed_submit;
  Counter batch_total_submit;
  std::uint64_t batch_read_bytes, batch_write_bytes, batch_read_bytes_per_s;
  std::uint64_t batch_write_bytes_per_s, batch_submit_latency_avg_us;
  std::uint64_t batch_complete_latency_avg_us, batch_submit_per_s, batch_complete_per_s;
  std::uint64_t batch_submit_latency_sum_us, batch_complete_latency_sum_us;
  std::uint64_t last_batch_read_bytes, last_batch_write_bytes;
  Counter readv, writev;
  std::uint64_t readv_bytes, writev_bytes, readv_bytes_per_s, writev_bytes_per_s;
  std::uint64_t readv_latency_avg_us, writev_latency_avg_us, readv_ops_per_s, writev_ops_per_s;
  std::uint64_t readv_latency_sum_us, writev_latency_sum_us;
};
static_assert(offsetof(Level1, read_bytes) == 96 && offsetof(Level1, batch_submit) == 176);
static_assert(offsetof(Level1, batch_read_bytes) == 416 && offsetof(Level1, readv) == 512);
static_assert(sizeof(Level1) == 624);

// CUfilePerGpuStats_t
struct GpuDirection {
  std::uint64_t bytes, bytes_per_s, utilization, duration_us, n, p2pdma, nvfs, posix, unaligned, dr;
};
struct PerGpu {
  std::array<char, 16> uuid;
  GpuDirection read;
  std::uint64_t sparse_regions, inline_regions, read_errors;
  GpuDirection write;
  std::uint64_t write_errors;
  std::uint64_t mapped, mapped_ok, mapped_err, mapped_free, registered_bytes;
};
static_assert(offsetof(PerGpu, write) == 120 && offsetof(PerGpu, mapped) == 208);
static_assert(sizeof(PerGpu) == 248);

inline constexpr std::size_t histogram_size = 32;
inline constexpr std::size_t gpu_limit = 16;
inline constexpr int layout_version_grown = 1190;  // the first with readv and writev

// The places of the structures in the layout of a version.
struct StatsLayout {
  std::size_t level1_bytes;
  constexpr std::size_t level2_bytes() const { return level1_bytes + 2 * 8 * histogram_size; }
  constexpr std::size_t gpus_at() const { return level2_bytes() + 8; }
  constexpr std::size_t level3_bytes() const { return gpus_at() + gpu_limit * sizeof(PerGpu); }
};
constexpr StatsLayout stats_layout(int version) {
  return {version >= layout_version_grown ? sizeof(Level1) : offsetof(Level1, readv)};
}
static_assert(stats_layout(1180).level2_bytes() == 1024);
static_assert(stats_layout(1180).level3_bytes() == 5000);
static_assert(stats_layout(1200).level2_bytes() == 1136);
static_assert(stats_layout(1200).level3_bytes() == 5112);

}  // namespace straightway::cufile::abi
