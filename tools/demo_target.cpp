#include "demo_target.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "arguments.hpp"
#include "device_memory.hpp"

namespace straightway::tools {
namespace {

constexpr unsigned char poison_byte = 0xDB;

class HostTarget : public DemoTarget {
 public:
  HostTarget(void* address, std::size_t size_bytes)
      : address_(static_cast<char*>(address)), size_bytes_(size_bytes) {}
  ~HostTarget() override { ::munmap(address_, size_bytes_); }
  HostTarget(const HostTarget&) = delete;
  HostTarget& operator=(const HostTarget&) = delete;

  Memory memory() const override { return {address_, size_bytes_}; }
  SpaceKind space() const override { return SpaceKind::host; }
  std::string name() const override { return "host memory"; }
  std::string witness() const override { return "plain pread() into other memory"; }
  Result<void> poison() override {
    std::memset(address_, poison_byte, size_bytes_);
    return {};
  }
  Result<void> fetch(std::uint64_t offset, void* to, std::size_t size) const override {
    std::memcpy(to, address_ + offset, size);
    return {};
  }

 private:
  char* address_;
  std::size_t size_bytes_;
};

class DeviceTarget : public DemoTarget {
 public:
  DeviceTarget(std::unique_ptr<DeviceMemory> memory, int device, std::size_t size_bytes)
      : memory_(std::move(memory)), device_(device), size_bytes_(size_bytes) {}

  Memory memory() const override { return {memory_->address(), size_bytes_}; }
  SpaceKind space() const override { return SpaceKind::cuda; }
  std::string name() const override {
    return fmt::format("cuda:{} ({})", device_, memory_->device_name());
  }
  std::string witness() const override {
    return "plain pread(), and the driver's own copy of the GPU's bytes";
  }
  Result<void> poison() override { return memory_->fill(poison_byte); }
  Result<void> fetch(std::uint64_t offset, void* to, std::size_t size) const override {
    return memory_->copy_out(offset, to, size);
  }

 private:
  std::unique_ptr<DeviceMemory> memory_;
  int device_;
  std::size_t size_bytes_;
};

}  // namespace

Result<std::unique_ptr<DemoTarget>> allocate_host(std::size_t size_bytes) {
  void* address =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    return system_error(errno, fmt::format("allocate {} bytes of host memory", size_bytes), "");
  }
  return std::unique_ptr<DemoTarget>(std::make_unique<HostTarget>(address, size_bytes));
}

Result<std::unique_ptr<DemoTarget>> allocate_device(int device, std::size_t size_bytes) {
  auto memory = DeviceMemory::allocate(device, size_bytes);
  if (!memory) return memory.error();
  return std::unique_ptr<DemoTarget>(
      std::make_unique<DeviceTarget>(std::move(*memory), device, size_bytes));
}

}  // namespace straightway::tools
