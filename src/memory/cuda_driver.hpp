#pragma once
// The CUDA driver's functions that are used here, found by dlopen("libcuda.so.1").

#include <string>
#include <type_traits>

#include "memory/cuda_types.hpp"
#include "straightway/result.hpp"

// Member, exported name, signature. The one list: the table, its filling and the check against
// cuda.h all walk it.
#define STRAIGHTWAY_CUDA_FUNCTIONS(X)                                                              \
  X(init, cuInit, Status(unsigned))                                                                \
  X(driver_version, cuDriverGetVersion, Status(int*))                                              \
  X(error_name, cuGetErrorName, Status(Status, const char**))                                      \
  X(error_string, cuGetErrorString, Status(Status, const char**))                                  \
  X(device_count, cuDeviceGetCount, Status(int*))                                                  \
  X(device_get, cuDeviceGet, Status(Device*, int))                                                 \
  X(device_name, cuDeviceGetName, Status(char*, int, Device))                                      \
  X(device_attribute, cuDeviceGetAttribute, Status(int*, int, Device))                             \
  X(primary_retain, cuDevicePrimaryCtxRetain, Status(Context*, Device))                            \
  X(context_push, cuCtxPushCurrent_v2, Status(Context))                                            \
  X(context_pop, cuCtxPopCurrent_v2, Status(Context*))                                             \
  X(context_current, cuCtxGetCurrent, Status(Context*))                                            \
  X(context_device, cuCtxGetDevice, Status(Device*))                                               \
  X(pointer_attributes, cuPointerGetAttributes,                                                    \
    Status(unsigned, PointerAttribute*, void**, DevicePointer))                                    \
  X(host_register, cuMemHostRegister_v2, Status(void*, std::size_t, unsigned))                     \
  X(host_unregister, cuMemHostUnregister, Status(void*))                                           \
  X(host_device_pointer, cuMemHostGetDevicePointer_v2, Status(DevicePointer*, void*, unsigned))    \
  X(copy_to_device, cuMemcpyHtoDAsync_v2, Status(DevicePointer, const void*, std::size_t, Stream)) \
  X(copy_to_host, cuMemcpyDtoHAsync_v2, Status(void*, DevicePointer, std::size_t, Stream))         \
  X(stream_create, cuStreamCreate, Status(Stream*, unsigned))                                      \
  X(stream_destroy, cuStreamDestroy_v2, Status(Stream))                                            \
  X(stream_query, cuStreamQuery, Status(Stream))                                                   \
  X(stream_synchronize, cuStreamSynchronize, Status(Stream))                                       \
  X(stream_context, cuStreamGetCtx, Status(Stream, Context*))                                      \
  X(stream_is_capturing, cuStreamIsCapturing, Status(Stream, CaptureStatus*))                      \
  X(exchange_capture_mode, cuThreadExchangeStreamCaptureMode, Status(CaptureMode*))                \
  X(event_create, cuEventCreate, Status(Event*, unsigned))                                         \
  X(event_destroy, cuEventDestroy_v2, Status(Event))                                               \
  X(event_record, cuEventRecord, Status(Event, Stream))                                            \
  X(event_query, cuEventQuery, Status(Event))                                                      \
  X(event_synchronize, cuEventSynchronize, Status(Event))

// Those that an older driver lacks: null there.
#define STRAIGHTWAY_CUDA_NEWER_FUNCTIONS(X) \
  X(stream_write_value, cuStreamWriteValue32_v2, Status(Stream, DevicePointer, unsigned, unsigned))

namespace straightway::memory::cuda {

struct Driver {
#define STRAIGHTWAY_MEMBER(member, symbol, ...) std::add_pointer_t<__VA_ARGS__> member = nullptr;
  STRAIGHTWAY_CUDA_FUNCTIONS(STRAIGHTWAY_MEMBER)
  STRAIGHTWAY_CUDA_NEWER_FUNCTIONS(STRAIGHTWAY_MEMBER)
#undef STRAIGHTWAY_MEMBER
  bool simulated = false;  // the library exports straightway_fake_cuda
};

// Loads libcuda.so.1 and fills the table; does not call cuInit.
Result<Driver> load_driver();

// "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"
std::string status_text(const Driver& driver, Status status);

// An error of the driver as a value. attempted: "copy 4096 bytes to cuda:0".
Error driver_error(const Driver& driver, Status status, std::string attempted);

// Whether a context that answered this can serve nothing any more: reset, destroyed, or broken by
// an error that CUDA keeps returning until the device is reset.
bool context_is_lost(Status status);

}  // namespace straightway::memory::cuda
