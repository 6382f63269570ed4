#include "device_memory.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace straightway::tools {

// The few calls of the driver API that the demo and the bench need; every status is an int, 0 is
// success.
struct DeviceMemory::Driver {
  int (*init)(unsigned) = nullptr;
  int (*get_device)(int*, int) = nullptr;
  int (*get_name)(char*, int, int) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*release)(int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*allocate)(unsigned long long*, std::size_t) = nullptr;
  int (*free)(unsigned long long) = nullptr;
  int (*fill)(unsigned long long, unsigned char, std::size_t) = nullptr;
  int (*copy_out)(void*, unsigned long long, std::size_t) = nullptr;
  int (*copy_in)(unsigned long long, const void*, std::size_t) = nullptr;
  int (*pin)(void*, std::size_t, unsigned) = nullptr;
  int (*unpin)(void*) = nullptr;
  int (*version)(int*) = nullptr;
  int (*synchronize)() = nullptr;
  int (*error_name)(int, const char**) = nullptr;
  void* context = nullptr;

  std::string load();  // "" or what is missing
  Error error(const std::string& attempted, int status) const;
};

std::string DeviceMemory::Driver::load() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return "libcuda.so.1 not found";
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr) missing = fmt::format("libcuda.so.1 has no {}", name);
  };
  find(init, "cuInit");
  find(get_device, "cuDeviceGet");
  find(get_name, "cuDeviceGetName");
  find(retain, "cuDevicePrimaryCtxRetain");
  find(release, "cuDevicePrimaryCtxRelease_v2");
  find(set_current, "cuCtxSetCurrent");
  find(allocate, "cuMemAlloc_v2");
  find(free, "cuMemFree_v2");
  find(fill, "cuMemsetD8_v2");
  find(copy_out, "cuMemcpyDtoH_v2");
  find(copy_in, "cuMemcpyHtoD_v2");
  find(pin, "cuMemHostRegister_v2");
  find(unpin, "cuMemHostUnregister");
  find(version, "cuDriverGetVersion");
  find(synchronize, "cuCtxSynchronize");
  find(error_name, "cuGetErrorName");
  return missing;
}

Error DeviceMemory::Driver::error(const std::string& attempted, int status) const {
  const char* name = nullptr;
  if (error_name != nullptr) error_name(status, &name);
  Error error;
  error.kind = status == 2 ? ErrorKind::out_of_memory : ErrorKind::device;
  error.origin = ErrorOrigin::cuda;
  error.code = status;
  error.attempted = attempted;
  error.why = name != nullptr ? name : fmt::format("CUDA error {}", status);
  return error;
}

DeviceMemory::DeviceMemory() : driver_(std::make_unique<Driver>()) {}

Result<std::unique_ptr<DeviceMemory>> DeviceMemory::allocate(int device, std::size_t size_bytes) {
  std::unique_ptr<DeviceMemory> memory(new DeviceMemory);
  Driver& driver = *memory->driver_;
  if (const std::string missing = driver.load(); !missing.empty()) {
    Error error;
    error.kind = ErrorKind::unsupported;
    error.attempted = "load the CUDA driver";
    error.why = missing;
    return error;
  }
  int handle = 0;
  int status = driver.init(0);
  if (status == 0) status = driver.get_device(&handle, device);
  void* context = nullptr;
  if (status == 0) status = driver.retain(&context, handle);
  if (status != 0) return driver.error(fmt::format("use cuda:{}", device), status);
  driver.context = context;
  memory->device_ = handle;
  std::array<char, 128> name{};
  if (driver.get_name(name.data(), static_cast<int>(name.size()) - 1, handle) == 0) {
    memory->device_name_ = name.data();
  }
  status = driver.set_current(context);
  if (status == 0) status = driver.allocate(&memory->address_, size_bytes);
  if (status != 0) {
    return driver.error(fmt::format("allocate {} bytes on cuda:{}", size_bytes, device), status);
  }
  memory->size_bytes_ = size_bytes;
  return memory;
}

DeviceMemory::~DeviceMemory() {
  if (driver_->context == nullptr) return;
  if (address_ != 0 && driver_->set_current(driver_->context) == 0) driver_->free(address_);
  driver_->set_current(nullptr);
  driver_->release(device_);
}

Result<void> DeviceMemory::fill(unsigned char byte) {
  int status = driver_->set_current(driver_->context);
  if (status == 0) status = driver_->fill(address_, byte, size_bytes_);
  if (status == 0) status = driver_->synchronize();
  if (status != 0) return driver_->error("fill device memory", status);
  return {};
}

std::string DeviceMemory::cuda_version() const {
  int version = 0;
  if (driver_->version(&version) != 0) return "";
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Result<void> DeviceMemory::pin(void* host, std::size_t size_bytes) {
  int status = driver_->set_current(driver_->context);
  if (status == 0) status = driver_->pin(host, size_bytes, 1);  // portable
  if (status != 0) return driver_->error(fmt::format("pin {} bytes", size_bytes), status);
  return {};
}

void DeviceMemory::unpin(void* host) {
  if (driver_->set_current(driver_->context) == 0) driver_->unpin(host);
}

Result<void> DeviceMemory::copy_in(std::size_t offset, const void* from, std::size_t size_bytes) {
  int status = driver_->set_current(driver_->context);
  if (status == 0) status = driver_->copy_in(address_ + offset, from, size_bytes);
  if (status != 0) return driver_->error("copy into device memory", status);
  return {};
}

Result<void> DeviceMemory::copy_out(std::size_t offset, void* to, std::size_t size_bytes) const {
  int status = driver_->set_current(driver_->context);
  if (status == 0) status = driver_->copy_out(to, address_ + offset, size_bytes);
  if (status != 0) return driver_->error("copy device memory back", status);
  return {};
}

}  // namespace straightway::tools
