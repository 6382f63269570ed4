#pragma once
// A device space without a device: its "device memory" is host memory, and its copies run late, a
// few at each poll. Runs the staged adaptor where there is no driver, not even a simulated one.

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <random>

#include "memory/space.hpp"

namespace straightway::contract {

class MappedPinned final : public memory::Pinned {
 public:
  explicit MappedPinned(std::size_t size_bytes) : size_bytes_(size_bytes) {
    void* mapped =
        mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<std::byte*>(mapped);
  }
  ~MappedPinned() override { munmap(data_, size_bytes_); }
  std::byte* data() const override { return data_; }
  std::size_t size_bytes() const override { return size_bytes_; }

 private:
  std::size_t size_bytes_;
  std::byte* data_ = nullptr;
};

class SlowLane final : public memory::Lane {
 public:
  explicit SlowLane(std::uint32_t seed) : random_(seed) {}
  ~SlowLane() override {
    while (!copies_.empty()) run_one();
  }

  Result<std::uint64_t> copy(Direction direction, std::uint64_t device_address, void* host,
                             std::size_t size_bytes) override {
    copies_.push_back({direction, device_address, host, size_bytes});
    return ++last_ticket_;
  }

  Result<std::uint64_t> poll() override {
    for (auto count = random_() % 3; count > 0 && !copies_.empty(); --count) run_one();
    return last_ticket_ - copies_.size();
  }

 private:
  struct Copy {
    Direction direction;
    std::uint64_t device_address;
    void* host;
    std::size_t size_bytes;
  };

  void run_one() {
    const Copy copy = copies_.front();
    copies_.pop_front();
    void* device = reinterpret_cast<void*>(copy.device_address);
    if (copy.direction == Direction::read) {
      std::memcpy(device, copy.host, copy.size_bytes);
      std::memset(copy.host, 0xEE, copy.size_bytes);  // a slot that is used again too early shows
    } else {
      std::memcpy(copy.host, device, copy.size_bytes);
    }
  }

  std::mt19937 random_;
  std::deque<Copy> copies_;
  std::uint64_t last_ticket_ = 0;
};

}  // namespace straightway::contract
