// Our declarations of the interface against the vendor's header: compiling is the test. Done by
// vendor_test.py, where that header can be had.

#include <cufile.h>

#include "cufile/abi.hpp"

namespace abi = straightway::cufile::abi;

#define SAME_SIZE(ours, theirs) static_assert(sizeof(abi::ours) == sizeof(theirs))
#define SAME_PLACE(ours, member, theirs, their_member)                          \
  static_assert(offsetof(abi::ours, member) == offsetof(theirs, their_member)); \
  static_assert(sizeof(abi::ours::member) == sizeof(theirs::their_member))
#define SAME_VALUE(ours, theirs) \
  static_assert(static_cast<int>(abi::ours) == static_cast<int>(theirs))

SAME_SIZE(Error, CUfileError_t);
SAME_SIZE(Descriptor, CUfileDescr_t);
SAME_SIZE(FileOperations, CUfileFSOps_t);
SAME_SIZE(RdmaInfo, cufileRDMAInfo_t);
SAME_SIZE(Properties, CUfileDrvProps_t);
SAME_SIZE(BatchEntry, CUfileIOParams_t);
SAME_SIZE(BatchEvent, CUfileIOEvents_t);
SAME_SIZE(Piece, CUfileIOVec_t);
SAME_SIZE(Counter, CUfileOpCounter_t);
SAME_SIZE(Level1, CUfileStatsLevel1_t);
SAME_SIZE(PerGpu, CUfilePerGpuStats_t);
static_assert(abi::stats_layout(1200).level2_bytes() == sizeof(CUfileStatsLevel2_t));
static_assert(abi::stats_layout(1200).level3_bytes() == sizeof(CUfileStatsLevel3_t));
static_assert(abi::stats_layout(1200).gpus_at() == offsetof(CUfileStatsLevel3_t, per_gpu_stats));

SAME_PLACE(Error, cuda_code, CUfileError_t, cu_err);
SAME_PLACE(Descriptor, operations, CUfileDescr_t, fs_ops);
static_assert(offsetof(abi::Descriptor, fd) == offsetof(CUfileDescr_t, handle));
SAME_PLACE(FileOperations, read, CUfileFSOps_t, read);
SAME_PLACE(FileOperations, write, CUfileFSOps_t, write);
SAME_PLACE(FileOperations, rdma_priority, CUfileFSOps_t, getRDMADevicePriority);
SAME_PLACE(Properties, poll_threshold_kb, CUfileDrvProps_t, nvfs.poll_thresh_size);
SAME_PLACE(Properties, max_direct_io_kb, CUfileDrvProps_t, nvfs.max_direct_io_size);
SAME_PLACE(Properties, control_flags, CUfileDrvProps_t, nvfs.dcontrolflags);
SAME_PLACE(Properties, feature_flags, CUfileDrvProps_t, fflags);
SAME_PLACE(Properties, per_buffer_cache_kb, CUfileDrvProps_t, per_buffer_cache_size);
SAME_PLACE(Properties, max_pinned_kb, CUfileDrvProps_t, max_device_pinned_mem_size);
SAME_PLACE(Properties, max_batch_io_timeout_ms, CUfileDrvProps_t, max_batch_io_timeout_msecs);
SAME_PLACE(BatchEntry, memory, CUfileIOParams_t, u.batch.devPtr_base);
SAME_PLACE(BatchEntry, memory_offset, CUfileIOParams_t, u.batch.devPtr_offset);
SAME_PLACE(BatchEntry, size, CUfileIOParams_t, u.batch.size);
SAME_PLACE(BatchEntry, handle, CUfileIOParams_t, fh);
SAME_PLACE(BatchEntry, cookie, CUfileIOParams_t, cookie);
SAME_PLACE(BatchEvent, result, CUfileIOEvents_t, ret);
SAME_PLACE(Level1, buffer_deregister, CUfileStatsLevel1_t, buf_deregister_ops);
SAME_PLACE(Level1, read_latency_sum_us, CUfileStatsLevel1_t, read_lat_sum_us);
SAME_PLACE(Level1, batch_total_submit, CUfileStatsLevel1_t, batch_total_submit_ops);
SAME_PLACE(Level1, last_batch_write_bytes, CUfileStatsLevel1_t, last_batch_write_bytes);
SAME_PLACE(Level1, readv, CUfileStatsLevel1_t, readv_ops);
SAME_PLACE(Level1, writev_latency_sum_us, CUfileStatsLevel1_t, writev_lat_sum_us);
static_assert(offsetof(abi::PerGpu, read.nvfs) == offsetof(CUfilePerGpuStats_t, n_nvfs_reads));
static_assert(offsetof(abi::PerGpu, read_errors) == offsetof(CUfilePerGpuStats_t, n_reads_err));
static_assert(offsetof(abi::PerGpu, write.posix) == offsetof(CUfilePerGpuStats_t, n_posix_writes));
static_assert(offsetof(abi::PerGpu, registered_bytes) == offsetof(CUfilePerGpuStats_t, reg_bytes));

SAME_VALUE(driver_not_initialized, CU_FILE_DRIVER_NOT_INITIALIZED);
SAME_VALUE(invalid_mapping_range, CU_FILE_INVALID_MAPPING_RANGE);
SAME_VALUE(invalid_value, CU_FILE_INVALID_VALUE);
SAME_VALUE(handle_not_registered, CU_FILE_HANDLE_NOT_REGISTERED);
SAME_VALUE(internal_error, CU_FILE_INTERNAL_ERROR);
SAME_VALUE(batch_full, CU_FILE_BATCH_FULL);
SAME_VALUE(async_not_supported, CU_FILE_ASYNC_NOT_SUPPORTED);
SAME_VALUE(internal_batch_submit_error, CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR);
SAME_VALUE(invalid_context_error, CU_FILE_INVALID_CONTEXT_ERROR);
SAME_VALUE(opaque_fd, CU_FILE_HANDLE_TYPE_OPAQUE_FD);
SAME_VALUE(userspace_fs, CU_FILE_HANDLE_TYPE_USERSPACE_FS);
SAME_VALUE(batch_mode, CUFILE_BATCH);
SAME_VALUE(opcode_write, CUFILE_WRITE);
SAME_VALUE(canceled, CUFILE_CANCELED);
SAME_VALUE(complete, CUFILE_COMPLETE);
SAME_VALUE(failed, CUFILE_FAILED);
static_assert(CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS + 1 == abi::size_parameter_count);
static_assert(CUFILE_PARAM_GDS_FALLBACK_IO + 1 == abi::bool_parameter_count);
