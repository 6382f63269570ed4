#pragma once
// A word of registered host memory that the device itself writes behind the work of a stream: who
// waits for the work looks at the word, and calls the driver only now and then, since after an
// error of the device the word never comes.

#include <atomic>
#include <cstdint>

#include "memory/cuda_driver.hpp"

namespace straightway::memory::cuda {

class Flag {
 public:
  Flag() = default;
  // word: four bytes of registered memory, for as long as the flag is used. Made in a current
  // context. Without the driver's support the flag is not usable.
  Flag(const Driver& driver, void* word) : word_(static_cast<std::uint32_t*>(word)) {
    if (driver.stream_write_value == nullptr ||
        driver.host_device_pointer(&address_, word, 0) != success) {
      word_ = nullptr;
      return;
    }
    std::atomic_ref(*word_).store(0, std::memory_order_relaxed);
  }

  bool usable() const { return word_ != nullptr; }
  // Behind what was queued on the stream so far.
  Status write(const Driver& driver, Stream stream, std::uint32_t value) {
    const Status status = driver.stream_write_value(stream, address_, value, 0);
    if (status == not_supported) word_ = nullptr;
    return status;
  }
  std::uint32_t value() const { return std::atomic_ref(*word_).load(std::memory_order_acquire); }

 private:
  std::uint32_t* word_ = nullptr;
  DevicePointer address_ = 0;
};

}  // namespace straightway::memory::cuda
