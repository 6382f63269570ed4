#pragma once
// The types and values of the CUDA driver API that are used here: our own declarations with the
// driver's binary interface, so that no toolkit is needed. tests/memory/cuda_header_check.cpp
// compares them with cuda.h where there is one.

#include <cstddef>
#include <cstdint>

namespace straightway::memory::cuda {

// CUresult.
enum Status : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  deinitialized = 4,
  no_device = 100,
  invalid_device = 101,
  invalid_context = 201,
  ecc_uncorrectable = 214,
  operating_system = 304,
  invalid_handle = 400,
  not_found = 500,
  not_ready = 600,
  illegal_address = 700,
  launch_timeout = 702,
  context_is_destroyed = 709,
  host_memory_already_registered = 712,
  host_memory_not_registered = 713,
  hardware_stack_error = 714,
  illegal_instruction = 715,
  misaligned_address = 716,
  invalid_address_space = 717,
  invalid_pc = 718,
  launch_failed = 719,
  not_permitted = 800,
  not_supported = 801,
  system_driver_mismatch = 803,
  stream_capture_unsupported = 900,
  stream_capture_invalidated = 901,
  stream_capture_implicit = 906,
  captured_event = 907,
  external_device = 911,
};

// CUmemorytype.
enum MemoryType : unsigned { memory_host = 1, memory_device = 2, memory_unified = 4 };

// CUpointer_attribute.
enum PointerAttribute : int {
  attribute_context = 1,
  attribute_memory_type = 2,
  attribute_device_pointer = 3,
  attribute_host_pointer = 4,
  attribute_buffer_id = 7,
  attribute_is_managed = 8,
  attribute_device_ordinal = 9,
  attribute_is_ipc_capable = 10,
  attribute_range_start = 11,
  attribute_range_size = 12,
  attribute_mapped = 13,
  attribute_memory_pool = 17,
};

// CUstreamCaptureStatus.
enum CaptureStatus : int { capture_none = 0, capture_active = 1, capture_invalidated = 2 };
// CUstreamCaptureMode.
enum CaptureMode : int { capture_global = 0, capture_thread_local = 1, capture_relaxed = 2 };

inline constexpr unsigned stream_non_blocking = 1;
inline constexpr unsigned event_blocking_sync = 1;
inline constexpr unsigned event_disable_timing = 2;
inline constexpr unsigned host_register_portable = 1;
inline constexpr unsigned host_register_read_only = 8;
// CUdevice_attribute.
inline constexpr int device_reads_held_pages = 113;  // READ_ONLY_HOST_REGISTER_SUPPORTED

using DevicePointer = unsigned long long;
using Device = int;
using Context = struct ContextTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using HostFunction = void (*)(void*);

struct Uuid {
  char bytes[16];
};

// The two default streams, as handles.
inline const Stream legacy_stream = reinterpret_cast<Stream>(std::uintptr_t{1});
inline const Stream per_thread_stream = reinterpret_cast<Stream>(std::uintptr_t{2});

}  // namespace straightway::memory::cuda
