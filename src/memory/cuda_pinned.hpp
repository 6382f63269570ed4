#pragma once
// Host memory registered with the driver.

#include <memory>

#include "memory/cuda_devices.hpp"
#include "memory/space.hpp"

namespace straightway::memory::cuda {

class RegisteredMemory final : public Pinned {
 public:
  static Result<std::unique_ptr<Pinned>> make(std::shared_ptr<Devices> devices, int device,
                                              std::size_t size_bytes, std::uint32_t threads = 1);
  ~RegisteredMemory() override;
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  std::byte* data() const override { return data_; }
  std::size_t size_bytes() const override { return size_bytes_; }

 private:
  RegisteredMemory(std::shared_ptr<Devices> devices, std::byte* data, std::size_t size_bytes)
      : devices_(std::move(devices)), data_(data), size_bytes_(size_bytes) {}

  const std::shared_ptr<Devices> devices_;
  std::byte* const data_;
  const std::size_t size_bytes_;
  Context context_ = nullptr;  // where it is registered; null: nowhere
};

}  // namespace straightway::memory::cuda
