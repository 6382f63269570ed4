#include <gmock/gmock.h>

#include "tests/memory/gpu_fixture.hpp"

namespace straightway::memory {
namespace {

using testing::Each;

constexpr std::size_t desk_bytes = 65536;
constexpr unsigned long_us = 20'000;

class DeskTest : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    use_device(0);
    memory_ = user_memory(desk_bytes);
    desk_ = must(space().open_desk(0, desk_bytes));
  }
  void TearDown() override {
    desk_.reset();
    fake_.user.free(memory_);
    Gpu::TearDown();
  }
  void fill(int value) { std::memset(desk_->data(), value, desk_bytes); }
  cuda::DevicePointer memory_ = 0;
  std::unique_ptr<Desk> desk_;
};

TEST_F(DeskTest, CopiesBothWaysAndReturnsWhenItIsDone) {
  EXPECT_EQ(desk_->size_bytes(), desk_bytes);
  for (int value = 1; value < 20; ++value) {
    fill(value);
    ASSERT_TRUE(desk_->copy(Direction::read, memory_, desk_bytes, {}));
    EXPECT_THAT(device_bytes(memory_, desk_bytes), Each(value));
    fill(99);
    ASSERT_TRUE(desk_->copy(Direction::write, memory_, desk_bytes, {}));
    EXPECT_EQ(static_cast<int>(desk_->data()[desk_bytes - 1]), value);
  }
}

TEST_F(DeskTest, C10_ComesAfterTheWorkOfTheUsersStream) {
  cuda::Stream stream = user_stream(cuda::stream_non_blocking);
  for (const auto given : {std::optional<void*>(stream), std::optional<void*>()}) {
    fill(7);
    ASSERT_EQ(fake_.fill_later(memory_, 42, desk_bytes, given ? stream : nullptr, long_us), 0);
    ASSERT_TRUE(desk_->copy(Direction::read, memory_, desk_bytes, given));
    EXPECT_THAT(device_bytes(memory_, desk_bytes), Each(7));
  }
  driver_.stream_destroy(stream);
}

TEST_F(DeskTest, WithoutTheDevicesMarkTheStreamIsWaitedFor) {
  fake_.fail_next("cuStreamWriteValue32", 100, cuda::not_supported);
  for (int value = 1; value < 4; ++value) {
    fill(value);
    ASSERT_TRUE(desk_->copy(Direction::read, memory_, desk_bytes, {}));
    EXPECT_THAT(device_bytes(memory_, desk_bytes), Each(value));
  }
}

TEST_F(DeskTest, AFailedCopyIsAnErrorAndNoEndlessWait) {
  fake_.fail_copies(cuda::illegal_address);
  const auto failed = desk_->copy(Direction::read, memory_, desk_bytes, {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, cuda::illegal_address);
  EXPECT_EQ(failed.error().kind, ErrorKind::device);
  fake_.fail_copies(0);
  desk_.reset();
  fake_.lose_device(0);
}

TEST_F(DeskTest, ACapturingStreamIsAnErrorAndTheCaptureGoesOn) {
  cuda::Stream stream = user_stream(cuda::stream_non_blocking);
  ASSERT_EQ(fake_.user.begin_capture(stream, cuda::capture_global), cuda::success);
  const auto failed = desk_->copy(Direction::read, memory_, desk_bytes, stream);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::invalid_argument);
  fill(3);
  EXPECT_TRUE(desk_->copy(Direction::read, memory_, desk_bytes, {}));
  void* graph = nullptr;
  EXPECT_EQ(fake_.user.end_capture(stream, &graph), cuda::success);
  driver_.stream_destroy(stream);
}

}  // namespace
}  // namespace straightway::memory
