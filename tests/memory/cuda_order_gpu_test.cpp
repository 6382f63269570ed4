#include <gmock/gmock.h>

#include "tests/memory/gpu_fixture.hpp"

namespace straightway::memory {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr unsigned long_us = 20'000;

class Order : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    use_device(0);
    memory_ = user_memory(4096);
  }
  void TearDown() override {
    fake_.user.free(memory_);
    Gpu::TearDown();
  }
  cuda::DevicePointer memory_ = 0;
};

TEST_F(Order, C10_AWriteComesAfterTheKernelOnTheDefaultStream) {
  auto ring = must(space().pin(0, 4096));
  auto lane = must(space().open_lane(0));
  ASSERT_EQ(fake_.fill_later(memory_, 42, 4096, nullptr, long_us), 0);
  ASSERT_TRUE(wait_stream(0, std::nullopt).ok());
  ASSERT_TRUE(lane->copy(Direction::write, memory_, ring->data(), 4096).ok());
  ASSERT_TRUE(finish(*lane, 1).ok());
  const auto* bytes = reinterpret_cast<const unsigned char*>(ring->data());
  EXPECT_THAT(std::vector<unsigned char>(bytes, bytes + 4096), Each(42));
}

TEST_F(Order, C10_ABlockingStreamIsPartOfTheDefaultStream) {
  cuda::Stream stream = user_stream(0);
  ASSERT_EQ(fake_.fill_later(memory_, 43, 4096, stream, long_us), 0);
  ASSERT_TRUE(wait_stream(0, std::nullopt).ok());
  EXPECT_THAT(device_bytes(memory_, 4096), Each(43));
  driver_.stream_destroy(stream);
}

TEST_F(Order, C10_TheGivenStreamIsWaitedFor) {
  cuda::Stream stream = user_stream(cuda::stream_non_blocking);
  ASSERT_EQ(fake_.fill_later(memory_, 44, 4096, stream, long_us), 0);
  ASSERT_TRUE(wait_stream(0, std::optional<void*>(stream)).ok());
  EXPECT_THAT(device_bytes(memory_, 4096), Each(44));
  driver_.stream_destroy(stream);
}

TEST_F(Order, AStreamOfAnotherDeviceIsWaitedFor) {
  use_device(1);
  const cuda::DevicePointer on_one = user_memory(64);
  cuda::Stream stream = user_stream(cuda::stream_non_blocking);
  ASSERT_EQ(fake_.fill_later(on_one, 45, 64, stream, long_us), 0);
  ASSERT_TRUE(wait_stream(0, std::optional<void*>(stream)).ok());
  EXPECT_THAT(device_bytes(on_one, 64), Each(45));
  driver_.stream_destroy(stream);
  fake_.user.free(on_one);
}

TEST_F(Order, ACapturingStreamIsAClearErrorAndStaysWhole) {
  cuda::Stream stream = user_stream(cuda::stream_non_blocking);
  ASSERT_EQ(fake_.user.begin_capture(stream, cuda::capture_global), cuda::success);
  const auto waited = wait_stream(0, std::optional<void*>(stream));
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().kind, ErrorKind::invalid_argument);
  EXPECT_THAT(waited.error().why, HasSubstr("capturing"));
  void* graph = nullptr;
  EXPECT_EQ(fake_.user.end_capture(stream, &graph), cuda::success);
  driver_.stream_destroy(stream);
}

TEST_F(Order, TheDefaultStreamBesideACaptureSaysToPassAStream) {
  cuda::Stream stream = user_stream(0);
  ASSERT_EQ(fake_.user.begin_capture(stream, cuda::capture_relaxed), cuda::success);
  const auto waited = wait_stream(0, std::nullopt);
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(waited.error().code, 906);
  EXPECT_THAT(waited.error().advice, HasSubstr("stream="));
  void* graph = nullptr;
  EXPECT_EQ(fake_.user.end_capture(stream, &graph), cuda::success);
  driver_.stream_destroy(stream);
}

TEST_F(Order, ACaptureElsewhereIsNotBroken) {
  for (const auto mode : {cuda::capture_global, cuda::capture_thread_local}) {
    cuda::Stream stream = user_stream(cuda::stream_non_blocking);
    cuda::Stream other = user_stream(cuda::stream_non_blocking);
    ASSERT_EQ(fake_.user.begin_capture(stream, mode), cuda::success);
    {
      auto ring = space().pin(0, 4096);
      ASSERT_TRUE(ring.ok()) << ring.error().why;
      auto lane = must(space().open_lane(0));
      EXPECT_TRUE(space().find(as_pointer(memory_), 4096).ok());
      EXPECT_TRUE(wait_stream(0, std::optional<void*>(other)).ok());
      EXPECT_TRUE(wait_stream(0, std::nullopt).ok());
      EXPECT_TRUE(lane->copy(Direction::read, memory_, (*ring)->data(), 4096).ok());
      EXPECT_TRUE(finish(*lane, 1).ok());
    }
    void* graph = nullptr;
    EXPECT_EQ(fake_.user.end_capture(stream, &graph), cuda::success);
    driver_.stream_destroy(stream);
    driver_.stream_destroy(other);
  }
}

TEST_F(Order, AStreamThatIsNoneIsAnError) {
  cuda::Stream stream = user_stream(0);
  driver_.stream_destroy(stream);
  const auto waited = wait_stream(0, std::optional<void*>(stream));
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code, 400);
}

}  // namespace
}  // namespace straightway::memory
