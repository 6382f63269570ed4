#include "target.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "arguments.hpp"
#include "device_memory.hpp"

namespace straightway::tools {
namespace {

constexpr unsigned char poison_byte = 0xDB;

// Anonymous memory of huge pages where the system gives them.
class Mapped {
 public:
  static Result<Mapped> make(std::size_t size_bytes) {
    void* address =
        ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) {
      return system_error(errno, fmt::format("allocate {} bytes of host memory", size_bytes), "");
    }
    ::madvise(address, size_bytes, MADV_HUGEPAGE);
    return Mapped(static_cast<char*>(address), size_bytes);
  }
  ~Mapped() {
    if (address_ != nullptr) ::munmap(address_, size_bytes_);
  }
  Mapped(Mapped&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), size_bytes_(other.size_bytes_) {}
  Mapped& operator=(Mapped&&) = delete;
  char* data() const { return address_; }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  Mapped(char* address, std::size_t size_bytes) : address_(address), size_bytes_(size_bytes) {}
  char* address_;
  std::size_t size_bytes_;
};

class PlainArea : public Area {
 public:
  explicit PlainArea(Mapped mapped) : mapped_(std::move(mapped)) {}
  char* data() const override { return mapped_.data(); }
  std::size_t size_bytes() const override { return mapped_.size_bytes(); }

 private:
  Mapped mapped_;
};

class RegisteredArea : public Area {
 public:
  RegisteredArea(Mapped mapped, std::shared_ptr<DeviceMemory> device)
      : mapped_(std::move(mapped)), device_(std::move(device)) {}
  ~RegisteredArea() override { device_->unpin(mapped_.data()); }
  RegisteredArea(const RegisteredArea&) = delete;
  RegisteredArea& operator=(const RegisteredArea&) = delete;
  char* data() const override { return mapped_.data(); }
  std::size_t size_bytes() const override { return mapped_.size_bytes(); }

 private:
  Mapped mapped_;
  std::shared_ptr<DeviceMemory> device_;
};

class HostTarget : public Target {
 public:
  explicit HostTarget(Mapped mapped) : mapped_(std::move(mapped)) {}

  Memory memory() const override { return {mapped_.data(), mapped_.size_bytes()}; }
  SpaceKind space() const override { return SpaceKind::host; }
  std::string name() const override { return "host memory"; }
  std::string driver() const override { return ""; }
  std::string witness() const override { return "plain pread() into other memory"; }
  Result<void> poison() override {
    std::memset(mapped_.data(), poison_byte, mapped_.size_bytes());
    return {};
  }
  Result<void> fetch(std::uint64_t offset, void* to, std::size_t size) const override {
    std::memcpy(to, mapped_.data() + offset, size);
    return {};
  }
  Result<void> load(std::uint64_t offset, const void* from, std::size_t size) override {
    std::memcpy(mapped_.data() + offset, from, size);
    return {};
  }
  Result<std::unique_ptr<Area>> make_area(std::size_t size_bytes) const override {
    auto mapped = Mapped::make(size_bytes);
    if (!mapped) return mapped.error();
    std::memset(mapped->data(), 1, size_bytes);
    return std::unique_ptr<Area>(std::make_unique<PlainArea>(std::move(*mapped)));
  }

 private:
  Mapped mapped_;
};

class DeviceTarget : public Target {
 public:
  DeviceTarget(std::unique_ptr<DeviceMemory> memory, int device, std::size_t size_bytes)
      : memory_(std::move(memory)), device_(device), size_bytes_(size_bytes) {}

  Memory memory() const override { return {memory_->address(), size_bytes_}; }
  SpaceKind space() const override { return SpaceKind::cuda; }
  std::string name() const override {
    return fmt::format("cuda:{} ({})", device_, memory_->device_name());
  }
  std::string driver() const override {
    const std::string version = memory_->cuda_version();
    return version.empty() ? version : "CUDA " + version;
  }
  std::string witness() const override {
    return "plain pread(), and the driver's own copy of the GPU's bytes";
  }
  Result<void> poison() override { return memory_->fill(poison_byte); }
  Result<void> fetch(std::uint64_t offset, void* to, std::size_t size) const override {
    return memory_->copy_out(offset, to, size);
  }
  Result<void> load(std::uint64_t offset, const void* from, std::size_t size) override {
    return memory_->copy_in(offset, from, size);
  }
  Result<std::unique_ptr<Area>> make_area(std::size_t size_bytes) const override {
    auto mapped = Mapped::make(size_bytes);
    if (!mapped) return mapped.error();
    std::memset(mapped->data(), 1, size_bytes);
    if (auto pinned = memory_->pin(mapped->data(), size_bytes); !pinned) return pinned.error();
    return std::unique_ptr<Area>(std::make_unique<RegisteredArea>(std::move(*mapped), memory_));
  }

 private:
  std::shared_ptr<DeviceMemory> memory_;
  int device_;
  std::size_t size_bytes_;
};

}  // namespace

Result<std::unique_ptr<Target>> allocate_host(std::size_t size_bytes) {
  auto mapped = Mapped::make(size_bytes);
  if (!mapped) return mapped.error();
  return std::unique_ptr<Target>(std::make_unique<HostTarget>(std::move(*mapped)));
}

Result<std::unique_ptr<Target>> allocate_device(int device, std::size_t size_bytes) {
  auto memory = DeviceMemory::allocate(device, size_bytes);
  if (!memory) return memory.error();
  return std::unique_ptr<Target>(
      std::make_unique<DeviceTarget>(std::move(*memory), device, size_bytes));
}

}  // namespace straightway::tools
