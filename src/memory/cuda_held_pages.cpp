#include "memory/cuda_held_pages.hpp"

namespace straightway::memory::cuda {
namespace {

class RegisteredPages final : public HeldPages {
 public:
  RegisteredPages(std::shared_ptr<Devices> devices, Context context, void* pages)
      : devices_(std::move(devices)), context_(context), pages_(pages) {}

  ~RegisteredPages() override {
    if (forked()) return;
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
  const Context context_;
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
  const int chosen = chosen_device(*devices, device);
  auto context = devices->in_context(chosen, "pin pages of a file", [&](Context) {
    return devices->driver().host_register(pages, size_bytes,
                                           host_register_portable | host_register_read_only);
  });
  if (!context) return context.error();
  return std::unique_ptr<HeldPages>(std::make_unique<RegisteredPages>(devices, *context, pages));
}

}  // namespace straightway::memory::cuda
