#include "memory/cuda_held_pages.hpp"

namespace straightway::memory::cuda {
namespace {

class RegisteredPages final : public HeldPages {
 public:
  RegisteredPages(std::shared_ptr<Devices> devices, void* pages)
      : devices_(std::move(devices)), pages_(pages) {}

  // Once; where it fails, nothing is registered.
  Result<void> register_in(int device, std::size_t size_bytes) {
    auto registered = devices_->in_context(device, "pin pages of a file", [&](Context context) {
      const Status status = devices_->driver().host_register(
          pages_, size_bytes, host_register_portable | host_register_read_only);
      if (status == success) context_ = context;
      return status;
    });
    if (!registered) return registered.error();
    return {};
  }

  ~RegisteredPages() override {
    if (context_ == nullptr || forked()) return;
    const Scope scope(devices_->driver(), context_);
    // Where the context is gone, so is the registration.
    if (scope.status() == success) devices_->driver().host_unregister(pages_);
  }
  RegisteredPages(const RegisteredPages&) = delete;
  RegisteredPages& operator=(const RegisteredPages&) = delete;

  bool forked() const override { return devices_->forked(); }

  // A copy from memory that the driver does not know would be made by the CPU.
  bool held() const override {
    if (forked()) return false;
    MemoryType type{};
    PointerAttribute name = attribute_memory_type;
    void* value = &type;
    const auto at = reinterpret_cast<DevicePointer>(pages_);
    return devices_->driver().pointer_attributes(1, &name, &value, at) == success &&
           type == memory_host;
  }

 private:
  const std::shared_ptr<Devices> devices_;
  Context context_ = nullptr;  // null: not registered
  void* const pages_;
};

int chosen_device(const Devices& devices, int device) {
  if (device >= 0) return device;
  Device current = 0;
  return devices.driver().context_device(&current) == success ? current : 0;
}

}  // namespace

Result<void> can_hold_pages(Devices& devices, int device) {
  if (auto parent = devices.check_fork("pin pages of a file"); !parent) return parent.error();
  const int chosen = chosen_device(devices, device);
  Device handle = 0;
  int answer = 0;
  const Driver& driver = devices.driver();
  Status status = driver.device_get(&handle, chosen);
  if (status == success) {
    status = driver.device_attribute(&answer, device_reads_held_pages, handle);
  }
  if (status == success && answer != 0) return {};
  const std::string name = "cuda:" + std::to_string(chosen);
  return Error{.kind = ErrorKind::unsupported,
               .attempted = "pin pages of a file for " + name,
               .path = {},
               .offset = {},
               .why = status != success ? status_text(driver, status)
                                        : name + " takes no read-only memory of the host",
               .advice = "read without a pin"};
}

Result<std::unique_ptr<HeldPages>> hold_pages(const std::shared_ptr<Devices>& devices, int device,
                                              void* pages, std::size_t size_bytes) {
  // Memory first: what is registered must not be forgotten.
  auto held = std::make_unique<RegisteredPages>(devices, pages);
  const auto registered = held->register_in(chosen_device(*devices, device), size_bytes);
  if (!registered) return registered.error();
  return std::unique_ptr<HeldPages>(std::move(held));
}

}  // namespace straightway::memory::cuda
