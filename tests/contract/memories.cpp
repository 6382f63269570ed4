#include "tests/contract/memories.hpp"

#include <dlfcn.h>
#include <sys/mman.h>

#include <cstring>
#include <new>
#include <stdexcept>

namespace straightway::contract {
namespace {

constexpr std::size_t page_bytes = 65536;  // of any kernel under test

class HostMemory final : public TestMemory {
 public:
  explicit HostMemory(std::size_t size_bytes)
      : size_bytes_(size_bytes),
        mapped_bytes_((size_bytes + page_bytes - 1) / page_bytes * page_bytes + 2 * page_bytes) {
    void* mapped = mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(mapped);
    mprotect(data(), mapped_bytes_ - 2 * page_bytes, PROT_READ | PROT_WRITE);
  }
  ~HostMemory() override { munmap(base_, mapped_bytes_); }

  MemoryRange range() const override {
    return {SpaceKind::host, -1, reinterpret_cast<std::uint64_t>(data()), size_bytes_};
  }
  void write(std::span<const std::byte> bytes) override {
    std::memcpy(data(), bytes.data(), bytes.size());
  }
  std::vector<std::byte> read() const override { return {data(), data() + size_bytes_}; }

 private:
  std::byte* data() const { return base_ + page_bytes; }
  std::size_t size_bytes_;
  std::size_t mapped_bytes_;
  std::byte* base_;
};

// The few calls of the driver that a program without a toolkit would make.
struct CudaCalls {
  int (*init)(unsigned) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*alloc)(std::uint64_t*, std::size_t) = nullptr;
  int (*free)(std::uint64_t) = nullptr;
  int (*to_device)(std::uint64_t, const void*, std::size_t) = nullptr;
  int (*to_host)(void*, std::uint64_t, std::size_t) = nullptr;
};

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string("libcuda.so.1 has no ") + name);
}

void check(int status, const char* call) {
  if (status != 0) throw std::runtime_error(std::string(call) + ": " + std::to_string(status));
}

CudaCalls load_cuda_calls() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error("no libcuda.so.1");
  CudaCalls calls;
  find(library, "cuInit", calls.init);
  find(library, "cuDeviceGet", calls.device_get);
  find(library, "cuDevicePrimaryCtxRetain", calls.retain);
  find(library, "cuCtxSetCurrent", calls.set_current);
  find(library, "cuMemAlloc_v2", calls.alloc);
  find(library, "cuMemFree_v2", calls.free);
  find(library, "cuMemcpyHtoD_v2", calls.to_device);
  find(library, "cuMemcpyDtoH_v2", calls.to_host);
  check(calls.init(0), "cuInit");
  return calls;
}

class CudaMemory final : public TestMemory {
 public:
  CudaMemory(const CudaCalls& calls, std::size_t size_bytes)
      : calls_(calls), size_bytes_(size_bytes) {
    int device = 0;
    check(calls_.device_get(&device, 0), "cuDeviceGet");
    check(calls_.retain(&context_, device), "cuDevicePrimaryCtxRetain");
    check(calls_.set_current(context_), "cuCtxSetCurrent");
    check(calls_.alloc(&address_, size_bytes), "cuMemAlloc");
    calls_.set_current(nullptr);  // transports find the context themselves
  }
  ~CudaMemory() override {
    calls_.set_current(context_);
    calls_.free(address_);
    calls_.set_current(nullptr);
  }

  MemoryRange range() const override { return {SpaceKind::cuda, 0, address_, size_bytes_}; }
  void write(std::span<const std::byte> bytes) override {
    calls_.set_current(context_);
    check(calls_.to_device(address_, bytes.data(), bytes.size()), "cuMemcpyHtoD");
    calls_.set_current(nullptr);
  }
  std::vector<std::byte> read() const override {
    std::vector<std::byte> bytes(size_bytes_);
    calls_.set_current(context_);
    check(calls_.to_host(bytes.data(), address_, size_bytes_), "cuMemcpyDtoH");
    calls_.set_current(nullptr);
    return bytes;
  }

 private:
  const CudaCalls& calls_;
  std::size_t size_bytes_;
  void* context_ = nullptr;
  std::uint64_t address_ = 0;
};

}  // namespace

std::unique_ptr<TestMemory> make_host_memory(std::size_t size_bytes) {
  return std::make_unique<HostMemory>(size_bytes);
}

std::unique_ptr<TestMemory> make_cuda_memory(std::size_t size_bytes, std::string* why) {
  try {
    static const CudaCalls calls = load_cuda_calls();
    return std::make_unique<CudaMemory>(calls, size_bytes);
  } catch (const std::runtime_error& error) {
    *why = error.what();
    return nullptr;
  }
}

std::uint64_t forbidden_address() {
  static void* const page =
      mmap(nullptr, page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return reinterpret_cast<std::uint64_t>(page);
}

}  // namespace straightway::contract
