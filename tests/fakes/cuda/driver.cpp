// Initialisation, devices, contexts, error texts, look-up of functions.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.hpp"

using namespace fake;

// The mark by which straightway::memory knows that this GPU is simulated.
FAKE_EXPORT int straightway_fake_cuda() { return 1; }

namespace {

struct Text {
  Status status;
  const char* name;
  const char* text;
};

constexpr Text texts[] = {
    {success, "CUDA_SUCCESS", "no error"},
    {invalid_value, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {not_initialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {deinitialized, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {no_device, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {invalid_device, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {invalid_context, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {ecc_uncorrectable, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {operating_system, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed or operation not supported"},
    {invalid_handle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {not_found, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {not_ready, "CUDA_ERROR_NOT_READY", "device not ready"},
    {illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {context_is_destroyed, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {host_memory_already_registered, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {host_memory_not_registered, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {launch_failed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {not_permitted, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {not_supported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {stream_capture_unsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {stream_capture_invalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {stream_capture_implicit, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
};

const Text* find_text(Status status) {
  const auto* found =
      std::ranges::find_if(texts, [&](const Text& text) { return text.status == status; });
  return found != std::end(texts) ? found : nullptr;
}

// A handle of this library, to look its own functions up.
void* myself() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&straightway_fake_cuda), &info) == 0) return nullptr;
  return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
}

bool is_device(Device device) { return device >= 0 && device < state().devices; }

}  // namespace

FAKE_EXPORT Status cuInit(unsigned) {
  FAKE_ENTER(cuInit);
  const char* told = std::getenv("FAKE_CUDA_INIT");
  if (told != nullptr && std::atoi(told) != 0) return static_cast<Status>(std::atoi(told));
  const Lock lock(state().mutex);
  if (state().devices == 0) return no_device;
  state().initialised = true;
  return success;
}

FAKE_EXPORT Status cuDriverGetVersion(int* version) {
  FAKE_ENTER(cuDriverGetVersion);
  const char* told = std::getenv("FAKE_CUDA_VERSION");
  *version = told != nullptr ? std::atoi(told) : 13000;
  return success;
}

FAKE_EXPORT Status cuGetErrorName(Status status, const char** out) {
  FAKE_ENTER(cuGetErrorName);
  const Text* text = find_text(status);
  *out = text != nullptr ? text->name : nullptr;
  return text != nullptr ? success : invalid_value;
}

FAKE_EXPORT Status cuGetErrorString(Status status, const char** out) {
  FAKE_ENTER(cuGetErrorString);
  const Text* text = find_text(status);
  *out = text != nullptr ? text->text : nullptr;
  return text != nullptr ? success : invalid_value;
}

FAKE_EXPORT Status cuGetProcAddress_v2(const char* name, void** out, int, std::uint64_t,
                                       int* found) {
  FAKE_ENTER(cuGetProcAddress);
  void* const library = myself();
  *out = dlsym(library, (std::string(name) + "_v2").c_str());
  if (*out == nullptr) *out = dlsym(library, name);
  if (found != nullptr) *found = *out != nullptr ? 0 : 1;  // success, symbol not found
  return *out != nullptr ? success : not_found;
}

FAKE_EXPORT Status cuGetProcAddress(const char* name, void** out, int version,
                                    std::uint64_t flags) {
  return cuGetProcAddress_v2(name, out, version, flags, nullptr);
}

FAKE_EXPORT Status cuDeviceGetCount(int* count) {
  FAKE_ENTER(cuDeviceGetCount);
  *count = state().devices;
  return success;
}

FAKE_EXPORT Status cuDeviceGet(Device* out, int ordinal) {
  FAKE_ENTER(cuDeviceGet);
  if (!is_device(ordinal)) return invalid_device;
  *out = ordinal;
  return success;
}

FAKE_EXPORT Status cuDeviceGetName(char* out, int size, Device device) {
  FAKE_ENTER(cuDeviceGetName);
  if (!is_device(device) || size <= 0) return invalid_value;
  std::snprintf(out, static_cast<std::size_t>(size), "Simulated GPU %d", device);
  return success;
}

FAKE_EXPORT Status cuDeviceGetAttribute(int* out, int, Device device) {
  FAKE_ENTER(cuDeviceGetAttribute);
  if (!is_device(device)) return invalid_device;
  *out = 1;
  return success;
}

FAKE_EXPORT Status cuDeviceGetUuid_v2(Uuid* out, Device device) {
  FAKE_ENTER(cuDeviceGetUuid);
  if (!is_device(device)) return invalid_device;
  std::memset(out->bytes, 0x5a, sizeof out->bytes);
  out->bytes[15] = static_cast<char>(device);
  return success;
}

FAKE_EXPORT Status cuDeviceGetUuid(Uuid* out, Device device) {
  return cuDeviceGetUuid_v2(out, device);
}

FAKE_EXPORT Status cuDeviceTotalMem_v2(std::size_t* out, Device device) {
  FAKE_ENTER(cuDeviceTotalMem);
  if (!is_device(device)) return invalid_device;
  *out = std::size_t{1} << 34;
  return success;
}

FAKE_EXPORT Status cuDevicePrimaryCtxRetain(Context* out, Device device) {
  FAKE_ENTER(cuDevicePrimaryCtxRetain);
  if (!is_device(device)) return invalid_device;
  const Lock lock(state().mutex);
  *out = reinterpret_cast<Context>(retain_primary(device));
  return success;
}

FAKE_EXPORT Status cuDevicePrimaryCtxRelease_v2(Device device) {
  FAKE_ENTER(cuDevicePrimaryCtxRelease);
  return is_device(device) ? success : invalid_device;  // kept: Straightway never releases
}

FAKE_EXPORT Status cuDevicePrimaryCtxGetState(Device device, unsigned* flags, int* active) {
  FAKE_ENTER(cuDevicePrimaryCtxGetState);
  if (!is_device(device)) return invalid_device;
  const Lock lock(state().mutex);
  *flags = 0;
  *active = state().primaries[static_cast<std::size_t>(device)] != nullptr ? 1 : 0;
  return success;
}

FAKE_EXPORT Status cuDevicePrimaryCtxReset_v2(Device device) {
  FAKE_ENTER(cuDevicePrimaryCtxReset);
  if (!is_device(device)) return invalid_device;
  Lock lock(state().mutex);
  ContextState* primary = state().primaries[static_cast<std::size_t>(device)];
  if (primary != nullptr) destroy_context(lock, primary);
  return success;
}

FAKE_EXPORT Status cuCtxPushCurrent_v2(Context handle) {
  FAKE_ENTER(cuCtxPushCurrent);
  auto* context = reinterpret_cast<ContextState*>(handle);
  const Lock lock(state().mutex);
  if (!state().contexts.contains(context)) return invalid_context;
  if (context->destroyed) return context_is_destroyed;
  context_stack().push_back(context);
  return success;
}

FAKE_EXPORT Status cuCtxPopCurrent_v2(Context* out) {
  FAKE_ENTER(cuCtxPopCurrent);
  auto& stack = context_stack();
  if (stack.empty()) return invalid_context;
  if (out != nullptr) *out = reinterpret_cast<Context>(stack.back());
  stack.pop_back();
  return success;
}

FAKE_EXPORT Status cuCtxSetCurrent(Context handle) {
  FAKE_ENTER(cuCtxSetCurrent);
  auto& stack = context_stack();
  if (!stack.empty()) stack.pop_back();
  if (handle != nullptr) stack.push_back(reinterpret_cast<ContextState*>(handle));
  return success;
}

// There are primary contexts only; programs look these up even where they call neither.
FAKE_EXPORT Status cuCtxCreate_v2(Context*, unsigned, Device) {
  FAKE_ENTER(cuCtxCreate);
  return not_supported;
}

FAKE_EXPORT Status cuCtxDestroy_v2(Context) {
  FAKE_ENTER(cuCtxDestroy);
  return not_supported;
}

FAKE_EXPORT Status cuCtxGetCurrent(Context* out) {
  FAKE_ENTER(cuCtxGetCurrent);
  const auto& stack = context_stack();
  *out = stack.empty() ? nullptr : reinterpret_cast<Context>(stack.back());
  return success;
}

FAKE_EXPORT Status cuCtxGetDevice(Device* out) {
  FAKE_ENTER(cuCtxGetDevice);
  const Lock lock(state().mutex);
  const Current current = current_context();
  if (current.context == nullptr) return current.status;
  *out = current.context->device;
  return current.context->destroyed ? context_is_destroyed : success;
}

FAKE_EXPORT Status cuCtxSynchronize() {
  FAKE_ENTER(cuCtxSynchronize);
  Lock lock(state().mutex);
  const Current current = current_context();
  if (current.status != success) return current.status;
  if (const Status status = unsafe_call(); status != success) return status;
  wait_for_context(lock, current.context);
  return current_context().status;
}

FAKE_EXPORT Status cuGraphDestroy(void*) {
  FAKE_ENTER(cuGraphDestroy);
  return success;
}
