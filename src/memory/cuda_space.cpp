#include "memory/cuda_space.hpp"

#include <atomic>

#include "memory/cuda_desk.hpp"
#include "memory/cuda_held_pages.hpp"
#include "memory/cuda_lane.hpp"
#include "memory/cuda_order.hpp"
#include "memory/cuda_pinned.hpp"
#include "memory/cuda_pointer.hpp"
#include "os/dynamic_library.hpp"

namespace straightway::memory {
namespace {

class CudaSpace final : public Space {
 public:
  explicit CudaSpace(std::shared_ptr<cuda::Devices> devices) : devices_(std::move(devices)) {}

  SpaceKind kind() const override { return SpaceKind::cuda; }

  Result<std::optional<MemoryRange>> find(const void* address,
                                          std::uint64_t size_bytes) const override {
    return cuda::find_pointer(*devices_, reinterpret_cast<std::uintptr_t>(address), size_bytes);
  }

  Result<std::unique_ptr<Pinned>> pin(std::int32_t device, std::size_t size_bytes,
                                      std::uint32_t threads) override {
    return cuda::RegisteredMemory::make(devices_, device, size_bytes, threads);
  }

  Result<std::unique_ptr<Lane>> open_lane(std::int32_t device) override {
    return cuda::CopyLane::open(devices_, device);
  }

  Result<std::unique_ptr<Desk>> open_desk(std::int32_t device, std::size_t size_bytes) override {
    return cuda::CopyDesk::open(devices_, device, size_bytes);
  }

  Result<void> can_hold_pages(std::int32_t device) override {
    return cuda::can_hold_pages(*devices_, device);
  }

  Result<std::unique_ptr<HeldPages>> hold_pages(std::int32_t device, void* pages,
                                                std::size_t size_bytes) override {
    return cuda::hold_pages(devices_, device, pages, size_bytes);
  }

  Result<void> in_context(std::int32_t device, const std::function<void()>& work) override {
    const auto made = devices_->in_context(device, "use the primary context", [&](cuda::Context) {
      work();
      return cuda::success;
    });
    if (!made) return made.error();
    return {};
  }

  Result<std::unique_ptr<Mark>> mark_stream(std::int32_t device,
                                            std::optional<void*> stream) override {
    return cuda::mark_stream(devices_, device, stream);
  }

 private:
  const std::shared_ptr<cuda::Devices> devices_;
};

Cuda without(std::string why_not) {
  return {.state = {.why_not = std::move(why_not)}, .space = nullptr};
}

}  // namespace

Cuda load_cuda() {
  auto driver = cuda::load_driver();
  if (!driver) {
    return without(driver.error().kind == ErrorKind::not_found
                       ? "no NVIDIA driver: " + driver.error().why
                       : "the NVIDIA driver is too old: " + driver.error().why);
  }
  cuda::Status status = driver->init(0);
  if (status != cuda::success && status != cuda::no_device) {
    auto lost = without("cuInit failed: " + cuda::status_text(*driver, status));
    lost.state.forked = status == cuda::not_initialized;
    if (lost.state.forked)
      lost.state.why_not += ", as in a forked child of a process that used CUDA";
    return lost;
  }
  Cuda result;
  result.state.driver = status == cuda::success;
  result.state.simulated = driver->simulated;
  int count = 0;
  if (status == cuda::success) status = driver->device_count(&count);
  if (status != cuda::success && status != cuda::no_device) {
    result.state.why_not = "cuDeviceGetCount failed: " + cuda::status_text(*driver, status);
  } else if (count == 0) {
    result.state.why_not = "the NVIDIA driver sees no device (see CUDA_VISIBLE_DEVICES)";
  } else {
    result.state.devices = count;
    result.space = std::make_shared<CudaSpace>(std::make_shared<cuda::Devices>(*driver, count));
  }
  return result;
}

bool driver_is_loaded() {
  // Asked on every transfer, so the last answer is kept for as long as no library was loaded since:
  // the number of loads, and in the lowest bit the answer.
  static std::atomic<std::uint64_t> last{0};
  const std::uint64_t loads = os::libraries_loaded() << 1;
  const std::uint64_t seen = last.load(std::memory_order_relaxed);
  if ((seen & ~std::uint64_t{1}) == loads) return (seen & 1) != 0;
  const bool loaded = os::library_is_loaded("libcuda.so.1");
  last.store(loads | (loaded ? 1 : 0), std::memory_order_relaxed);
  return loaded;
}

}  // namespace straightway::memory
