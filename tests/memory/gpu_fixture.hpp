#pragma once
// What the tests of the CUDA space share: the simulated GPU, the space on it, and the part of a
// user's program.

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "memory/cuda_driver.hpp"
#include "memory/cuda_space.hpp"
#include "tests/fakes/fake_cuda.hpp"

namespace straightway::memory {

// The value of a result that has to have one.
template <class T>
T must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().attempted + ": " + result.error().why);
  return std::move(*result);
}

class Gpu : public testing::Test {
 protected:
  Gpu() : fake_(), cuda_(load_cuda()), driver_(must(cuda::load_driver())) {}

  void SetUp() override { ASSERT_NE(cuda_.space, nullptr) << cuda_.state.why_not; }
  void TearDown() override {
    fake_.heal();
    while (used_-- > 0) driver_.context_pop(nullptr);
  }

  Space& space() { return *cuda_.space; }

  Result<void> wait_stream(int device, std::optional<void*> stream) {
    auto mark = space().mark_stream(device, stream);
    if (!mark) return mark.error();
    return (*mark)->wait();
  }

  // As the user's program: makes the device's primary context current on this thread.
  void use_device(int device) {
    cuda::Context context = nullptr;
    ASSERT_EQ(driver_.primary_retain(&context, device), cuda::success);
    ASSERT_EQ(driver_.context_push(context), cuda::success);
    ++used_;
  }

  cuda::DevicePointer user_memory(std::size_t size) {
    cuda::DevicePointer pointer = 0;
    EXPECT_EQ(fake_.user.alloc(&pointer, size), cuda::success);
    return pointer;
  }

  cuda::Stream user_stream(unsigned flags) {
    cuda::Stream stream = nullptr;
    EXPECT_EQ(driver_.stream_create(&stream, flags), cuda::success);
    return stream;
  }

  std::vector<unsigned char> device_bytes(cuda::DevicePointer from, std::size_t size) {
    std::vector<unsigned char> bytes(size);
    EXPECT_EQ(fake_.read(from, bytes.data(), size), 0);
    return bytes;
  }
  std::vector<char> device_chars(cuda::DevicePointer from, std::size_t size) {
    std::vector<char> bytes(size);
    EXPECT_EQ(fake_.read(from, bytes.data(), size), 0);
    return bytes;
  }

  // Polls until the ticket is done, or an error.
  static Result<std::uint64_t> finish(Lane& lane, std::uint64_t ticket) {
    for (;;) {
      auto done = lane.poll();
      if (!done || *done >= ticket) return done;
      std::this_thread::yield();
    }
  }

  fakes::FakeCuda fake_;
  Cuda cuda_;
  cuda::Driver driver_;
  int used_ = 0;
};

inline const void* as_pointer(cuda::DevicePointer address) {
  return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address));
}

}  // namespace straightway::memory
