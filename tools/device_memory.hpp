#pragma once
// GPU memory for the demo and the bench, by the CUDA driver itself. It shares no code with the
// library, so that what it copies back is an independent witness.

#include <cstddef>
#include <memory>
#include <string>

#include "straightway/result.hpp"

namespace straightway::tools {

class DeviceMemory {
 public:
  static Result<std::unique_ptr<DeviceMemory>> allocate(int device, std::size_t size_bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  void* address() const { return reinterpret_cast<void*>(address_); }
  const std::string& device_name() const { return device_name_; }
  // "13.0", what the driver supports; empty where it does not say.
  std::string cuda_version() const;
  // Registers page-aligned host memory, so that copies from it go at the link's speed.
  Result<void> pin(void* host, std::size_t size_bytes);
  void unpin(void* host);
  // Both return when the bytes are there; from any thread.
  Result<void> copy_in(std::size_t offset, const void* from, std::size_t size_bytes);
  Result<void> fill(unsigned char byte);
  Result<void> copy_out(std::size_t offset, void* to, std::size_t size_bytes) const;

 private:
  struct Driver;
  DeviceMemory();
  std::unique_ptr<Driver> driver_;
  int device_ = 0;
  unsigned long long address_ = 0;
  std::size_t size_bytes_ = 0;
  std::string device_name_;
};

}  // namespace straightway::tools
