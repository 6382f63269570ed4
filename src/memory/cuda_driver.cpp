#include "memory/cuda_driver.hpp"

#include "os/dynamic_library.hpp"

namespace straightway::memory::cuda {
namespace {

ErrorKind kind_of(Status status) {
  switch (status) {
    case out_of_memory:
      return ErrorKind::out_of_memory;
    case not_permitted:
      return ErrorKind::permission;
    case not_supported:
      return ErrorKind::unsupported;
    case stream_capture_implicit:
    case stream_capture_unsupported:
    case stream_capture_invalidated:
      return ErrorKind::invalid_argument;
    default:
      return ErrorKind::device;
  }
}

const char* advice_for(Status status) {
  switch (status) {
    case out_of_memory:
      return "free device or pinned memory, or lower the pinned-bytes limit";
    case invalid_context:
    case context_is_destroyed:
      return "the device was reset: repeat the call with new memory";
    case deinitialized:
      return "do not use the GPU while the process is ending";
    case not_initialized:
      return "in a forked process, start it with spawn or exec instead";
    case invalid_value:
    case invalid_handle:
      return "check that the memory and the stream are still alive";
    case stream_capture_implicit:
      return "pass stream=, or transfer outside the capture";
    case stream_capture_unsupported:
    case stream_capture_invalidated:
      return "transfer outside the capture";
    case system_driver_mismatch:
      return "reboot, or reload the NVIDIA kernel module";
    default:
      return context_is_lost(status)
                 ? "work on this device failed, not necessarily ours: reset the device or "
                   "restart the process"
                 : "see the driver's messages (dmesg, nvidia-smi)";
  }
}

}  // namespace

Result<Driver> load_driver() {
  auto library = os::DynamicLibrary::open("libcuda.so.1");
  if (!library) return library.error();
  Driver driver;
  const os::Symbol table[] = {
#define STRAIGHTWAY_ENTRY(member, symbol, ...) {#symbol, reinterpret_cast<void**>(&driver.member)},
      STRAIGHTWAY_CUDA_FUNCTIONS(STRAIGHTWAY_ENTRY)
#undef STRAIGHTWAY_ENTRY
  };
  if (auto filled = library->fill(table); !filled) return filled.error();
#define STRAIGHTWAY_FIND(member, symbol, ...) \
  driver.member = reinterpret_cast<decltype(driver.member)>(library->find(#symbol));
  STRAIGHTWAY_CUDA_NEWER_FUNCTIONS(STRAIGHTWAY_FIND)
#undef STRAIGHTWAY_FIND
  driver.simulated = library->find("straightway_fake_cuda") != nullptr;
  return driver;
}

std::string status_text(const Driver& driver, Status status) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.error_name(status, &name) != success || name == nullptr) {
    return "CUresult " + std::to_string(static_cast<int>(status));
  }
  if (driver.error_string(status, &text) != success || text == nullptr) return name;
  return std::string(name) + ": " + text;
}

Error driver_error(const Driver& driver, Status status, std::string attempted) {
  return Error{.kind = kind_of(status),
               .origin = ErrorOrigin::cuda,
               .code = status,
               .attempted = std::move(attempted),
               .path = {},
               .offset = {},
               .why = status_text(driver, status),
               .advice = advice_for(status)};
}

bool context_is_lost(Status status) {
  switch (status) {
    case deinitialized:
    case invalid_context:
    case ecc_uncorrectable:
    case invalid_handle:
    case illegal_address:
    case launch_timeout:
    case context_is_destroyed:
    case hardware_stack_error:
    case illegal_instruction:
    case misaligned_address:
    case invalid_address_space:
    case invalid_pc:
    case launch_failed:
    case external_device:
      return true;
    default:
      return false;
  }
}

}  // namespace straightway::memory::cuda
