#pragma once
// The simulated GPU: a libcuda.so.1 that needs none. Device addresses fault on a CPU touch, async
// copies run late and out of step. These are its controls, beside the driver API that it exports;
// all are C functions of the library. Environment: FAKE_CUDA_DEVICES (2), FAKE_CUDA_SEED (1),
// FAKE_CUDA_DELAY_US (200, the longest delay of a copy), FAKE_CUDA_INIT (what cuInit answers),
// FAKE_CUDA_VERSION (13000), FAKE_CUDA_WRONG_COPIES (every so-manieth copy from pinned to device
// memory brings a wrong byte).

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "memory/cuda_driver.hpp"

// Name (after fake_cuda_) and signature.
#define FAKE_CUDA_CONTROLS(X)                                                                   \
  /* The next `count` calls of a driver function (no _v2) answer `status`. */                   \
  X(fail_next, void(const char* function, int count, int status))                               \
  /* Every copy that runs from now on fails and breaks its context; 0 ends it. */               \
  X(fail_copies, void(int status))                                                              \
  /* Undoes fail_next, fail_copies, hold and hold_copies. */                                    \
  X(heal, void())                                                                               \
  /* While held, no queued work runs. Nested calls count. */                                    \
  X(hold, void(int on))                                                                         \
  /* The same of copies alone; all else runs. */                                                \
  X(hold_copies, void(int on))                                                                  \
  /* Destroys the primary context, as cuDevicePrimaryCtxReset by somebody else. */              \
  X(lose_device, void(int device))                                                              \
  /* A kernel: after delay_us, fills device memory, in stream order (null: legacy stream). */   \
  X(fill_later,                                                                                 \
    int(unsigned long long at, int value, std::size_t size, void* stream, unsigned delay_us))   \
  /* Device memory from the CPU side, at once, whatever is queued. 0, or 1 out of range. */     \
  X(read, int(unsigned long long from, void* to, std::size_t size))                             \
  X(write, int(unsigned long long to, const void* from, std::size_t size))                      \
  /* The CPU's way to the bytes behind a device address; null out of range. */                  \
  X(shadow, void*(unsigned long long address, std::size_t size))                                \
  /* Device memory without a context. segments: virtual memory of that many mappings. */        \
  X(allocate, unsigned long long(int device, std::size_t size))                                 \
  X(allocate_segments, unsigned long long(int device, std::size_t segment_bytes, int segments)) \
  X(release, void(unsigned long long address))                                                  \
  /* What lives now. */                                                                         \
  X(pinned_bytes, std::uint64_t())                                                              \
  X(allocations, std::uint64_t())                                                               \
  X(streams, std::uint64_t())                                                                   \
  X(events, std::uint64_t())                                                                    \
  X(contexts, std::uint64_t())                                                                  \
  /* What was done so far. */                                                                   \
  X(calls, std::uint64_t())                                                                     \
  X(calls_of, std::uint64_t(const char* function))                                              \
  X(pageable_copies, std::uint64_t())

// Driver functions that tests call as the user's program would, beyond those of the space.
#define FAKE_CUDA_USER_FUNCTIONS(X)                                                  \
  X(alloc, cuMemAlloc_v2, Status(DevicePointer*, std::size_t))                       \
  X(free, cuMemFree_v2, Status(DevicePointer))                                       \
  X(alloc_async, cuMemAllocAsync, Status(DevicePointer*, std::size_t, Stream))       \
  X(free_async, cuMemFreeAsync, Status(DevicePointer, Stream))                       \
  X(alloc_managed, cuMemAllocManaged, Status(DevicePointer*, std::size_t, unsigned)) \
  X(host_alloc, cuMemHostAlloc, Status(void**, std::size_t, unsigned))               \
  X(host_free, cuMemFreeHost, Status(void*))                                         \
  X(primary_reset, cuDevicePrimaryCtxReset_v2, Status(Device))                       \
  X(begin_capture, cuStreamBeginCapture_v2, Status(Stream, CaptureMode))             \
  X(end_capture, cuStreamEndCapture, Status(Stream, void**))                         \
  X(memcpy_sync, cuMemcpy, Status(DevicePointer, DevicePointer, std::size_t))        \
  X(launch_host, cuLaunchHostFunc, Status(Stream, HostFunction, void*))              \
  X(memset_sync, cuMemsetD8_v2, Status(DevicePointer, unsigned char, std::size_t))

namespace straightway::fakes {

// The controls and user functions, found in the libcuda.so.1 that the loader gives. Throws where
// that is not the fake: no test may touch a real GPU by mistake.
class FakeCuda {
 public:
  FakeCuda() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr || dlsym(library, "straightway_fake_cuda") == nullptr) {
      throw std::runtime_error("the first libcuda.so.1 of LD_LIBRARY_PATH is not the fake");
    }
#define FAKE_CUDA_FILL(member, ...)                                         \
  member = reinterpret_cast<std::add_pointer_t<__VA_ARGS__>>(dlsym(library, \
                                                                   "fake_"  \
                                                                   "cuda_" #member));
    FAKE_CUDA_CONTROLS(FAKE_CUDA_FILL)
#undef FAKE_CUDA_FILL
#define FAKE_CUDA_FILL(member, symbol, ...) \
  user.member = reinterpret_cast<decltype(user.member)>(dlsym(library, #symbol));
    FAKE_CUDA_USER_FUNCTIONS(FAKE_CUDA_FILL)
#undef FAKE_CUDA_FILL
  }

#define FAKE_CUDA_MEMBER(member, ...) std::add_pointer_t<__VA_ARGS__> member = nullptr;
  FAKE_CUDA_CONTROLS(FAKE_CUDA_MEMBER)
#undef FAKE_CUDA_MEMBER

  struct UserFunctions {
    using Status = memory::cuda::Status;
    using DevicePointer = memory::cuda::DevicePointer;
    using Device = memory::cuda::Device;
    using Stream = memory::cuda::Stream;
    using CaptureMode = memory::cuda::CaptureMode;
    using HostFunction = memory::cuda::HostFunction;
#define FAKE_CUDA_MEMBER(member, symbol, ...) std::add_pointer_t<__VA_ARGS__> member = nullptr;
    FAKE_CUDA_USER_FUNCTIONS(FAKE_CUDA_MEMBER)
#undef FAKE_CUDA_MEMBER
  };
  UserFunctions user;
};

}  // namespace straightway::fakes
