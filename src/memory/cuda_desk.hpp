#pragma once
// Pinned bytes, and copies in the user's own stream that are waited for.

#include <memory>

#include "memory/cuda_devices.hpp"
#include "memory/cuda_flag.hpp"
#include "memory/cuda_order.hpp"
#include "memory/space.hpp"

namespace straightway::memory::cuda {

class CopyDesk final : public Desk {
 public:
  static Result<std::unique_ptr<Desk>> open(std::shared_ptr<Devices> devices, int device,
                                            std::size_t size_bytes);

  std::byte* data() const override { return pinned_->data(); }
  std::size_t size_bytes() const override { return size_bytes_; }
  Result<void> copy(Direction direction, std::uint64_t device_address, std::size_t size_bytes,
                    std::optional<void*> stream) override {
    return copy_between(direction, device_address, data(), size_bytes, stream);
  }
  bool is_idle(std::optional<void*> stream) override;
  Result<void> copy_held(std::uint64_t device_address, std::byte* pages, std::size_t size_bytes,
                         std::optional<void*> stream) override {
    return copy_between(Direction::read, device_address, pages, size_bytes, stream);
  }

 private:
  CopyDesk(std::shared_ptr<Devices> devices, int device, std::size_t size_bytes)
      : devices_(std::move(devices)), device_(device), size_bytes_(size_bytes) {}
  Result<void> copy_between(Direction direction, std::uint64_t device_address, std::byte* host,
                            std::size_t size_bytes, std::optional<void*> stream);
  Status queue(Direction direction, std::uint64_t device_address, std::byte* host,
               std::size_t size_bytes, Stream stream);
  Status wait(const UserStream& user);
  Status ask(const UserStream& user);

  const std::shared_ptr<Devices> devices_;
  const int device_;
  const std::size_t size_bytes_;
  std::unique_ptr<Pinned> pinned_;  // the bytes, then the flag's page
  Flag flag_;
  std::uint32_t copies_ = 0;
};

}  // namespace straightway::memory::cuda
