// Compares our declarations of the CUDA driver API with the real cuda.h. Compiling is the test.

#include <cuda.h>

#include <type_traits>

#include "memory/cuda_driver.hpp"

namespace ours = straightway::memory::cuda;

namespace {

// Passed in the same way: a pointer for a pointer, or whole numbers of one size.
template <class A, class B>
constexpr bool same_way() {
  constexpr auto whole = [](auto is_enum, auto is_integral) { return is_enum || is_integral; };
  constexpr bool numbers = whole(std::is_enum_v<A>, std::is_integral_v<A>) &&
                           whole(std::is_enum_v<B>, std::is_integral_v<B>);
  return sizeof(A) == sizeof(B) && (numbers || (std::is_pointer_v<A> && std::is_pointer_v<B>));
}

template <class A, class B>
struct SameAbi : std::false_type {};
template <class A, class... As, class B, class... Bs>
  requires(sizeof...(As) == sizeof...(Bs))
struct SameAbi<A (*)(As...), B (*)(Bs...)>
    : std::bool_constant<same_way<A, B>() && (same_way<As, Bs>() && ...)> {};

#define CHECK_FUNCTION(member, symbol, ...) \
  static_assert(SameAbi<decltype(ours::Driver::member), decltype(&::symbol)>::value, #symbol);
STRAIGHTWAY_CUDA_FUNCTIONS(CHECK_FUNCTION)
STRAIGHTWAY_CUDA_NEWER_FUNCTIONS(CHECK_FUNCTION)

#define CHECK_VALUE(mine, theirs) static_assert(static_cast<int>(mine) == static_cast<int>(theirs))
CHECK_VALUE(ours::success, CUDA_SUCCESS);
CHECK_VALUE(ours::invalid_value, CUDA_ERROR_INVALID_VALUE);
CHECK_VALUE(ours::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
CHECK_VALUE(ours::not_initialized, CUDA_ERROR_NOT_INITIALIZED);
CHECK_VALUE(ours::deinitialized, CUDA_ERROR_DEINITIALIZED);
CHECK_VALUE(ours::no_device, CUDA_ERROR_NO_DEVICE);
CHECK_VALUE(ours::invalid_device, CUDA_ERROR_INVALID_DEVICE);
CHECK_VALUE(ours::invalid_context, CUDA_ERROR_INVALID_CONTEXT);
CHECK_VALUE(ours::ecc_uncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
CHECK_VALUE(ours::operating_system, CUDA_ERROR_OPERATING_SYSTEM);
CHECK_VALUE(ours::invalid_handle, CUDA_ERROR_INVALID_HANDLE);
CHECK_VALUE(ours::not_found, CUDA_ERROR_NOT_FOUND);
CHECK_VALUE(ours::not_ready, CUDA_ERROR_NOT_READY);
CHECK_VALUE(ours::illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS);
CHECK_VALUE(ours::launch_timeout, CUDA_ERROR_LAUNCH_TIMEOUT);
CHECK_VALUE(ours::context_is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
CHECK_VALUE(ours::host_memory_already_registered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
CHECK_VALUE(ours::host_memory_not_registered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
CHECK_VALUE(ours::hardware_stack_error, CUDA_ERROR_HARDWARE_STACK_ERROR);
CHECK_VALUE(ours::illegal_instruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
CHECK_VALUE(ours::misaligned_address, CUDA_ERROR_MISALIGNED_ADDRESS);
CHECK_VALUE(ours::invalid_address_space, CUDA_ERROR_INVALID_ADDRESS_SPACE);
CHECK_VALUE(ours::invalid_pc, CUDA_ERROR_INVALID_PC);
CHECK_VALUE(ours::launch_failed, CUDA_ERROR_LAUNCH_FAILED);
CHECK_VALUE(ours::not_permitted, CUDA_ERROR_NOT_PERMITTED);
CHECK_VALUE(ours::not_supported, CUDA_ERROR_NOT_SUPPORTED);
CHECK_VALUE(ours::system_driver_mismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
CHECK_VALUE(ours::stream_capture_unsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
CHECK_VALUE(ours::stream_capture_invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
CHECK_VALUE(ours::stream_capture_implicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
CHECK_VALUE(ours::captured_event, CUDA_ERROR_CAPTURED_EVENT);
CHECK_VALUE(ours::external_device, CUDA_ERROR_EXTERNAL_DEVICE);
CHECK_VALUE(ours::memory_host, CU_MEMORYTYPE_HOST);
CHECK_VALUE(ours::memory_device, CU_MEMORYTYPE_DEVICE);
CHECK_VALUE(ours::memory_unified, CU_MEMORYTYPE_UNIFIED);
CHECK_VALUE(ours::attribute_context, CU_POINTER_ATTRIBUTE_CONTEXT);
CHECK_VALUE(ours::attribute_memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
CHECK_VALUE(ours::attribute_device_pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
CHECK_VALUE(ours::attribute_host_pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER);
CHECK_VALUE(ours::attribute_buffer_id, CU_POINTER_ATTRIBUTE_BUFFER_ID);
CHECK_VALUE(ours::attribute_is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED);
CHECK_VALUE(ours::attribute_device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
CHECK_VALUE(ours::attribute_is_ipc_capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
CHECK_VALUE(ours::attribute_range_start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
CHECK_VALUE(ours::attribute_range_size, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
CHECK_VALUE(ours::attribute_mapped, CU_POINTER_ATTRIBUTE_MAPPED);
CHECK_VALUE(ours::attribute_memory_pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
CHECK_VALUE(ours::capture_none, CU_STREAM_CAPTURE_STATUS_NONE);
CHECK_VALUE(ours::capture_active, CU_STREAM_CAPTURE_STATUS_ACTIVE);
CHECK_VALUE(ours::capture_invalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
CHECK_VALUE(ours::capture_global, CU_STREAM_CAPTURE_MODE_GLOBAL);
CHECK_VALUE(ours::capture_thread_local, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
CHECK_VALUE(ours::capture_relaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
CHECK_VALUE(ours::stream_non_blocking, CU_STREAM_NON_BLOCKING);
CHECK_VALUE(ours::event_blocking_sync, CU_EVENT_BLOCKING_SYNC);
CHECK_VALUE(ours::event_disable_timing, CU_EVENT_DISABLE_TIMING);
CHECK_VALUE(ours::host_register_portable, CU_MEMHOSTREGISTER_PORTABLE);
CHECK_VALUE(ours::host_register_read_only, CU_MEMHOSTREGISTER_READ_ONLY);
static_assert(sizeof(ours::Uuid) == sizeof(CUuuid));
static_assert(sizeof(ours::DevicePointer) == sizeof(CUdeviceptr));
static_assert(sizeof(ours::Device) == sizeof(CUdevice));

}  // namespace
