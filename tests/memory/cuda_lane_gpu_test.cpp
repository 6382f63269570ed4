#include <gmock/gmock.h>

#include <barrier>

#include "tests/memory/gpu_fixture.hpp"

namespace straightway::memory {
namespace {

using testing::Each;
using testing::HasSubstr;

class Copies : public Gpu {
 protected:
  std::unique_ptr<Pinned> pin(std::size_t size, int value = 0, int device = 0) {
    auto pinned = space().pin(device, size);
    EXPECT_TRUE(pinned.ok());
    std::memset((*pinned)->data(), value, size);
    return std::move(*pinned);
  }
  std::unique_ptr<Lane> open_lane(int device = 0) {
    auto lane = space().open_lane(device);
    EXPECT_TRUE(lane.ok());
    return std::move(*lane);
  }
};

TEST_F(Copies, TicketsCountUpAndBytesArriveBothWays) {
  const cuda::DevicePointer memory = fake_.allocate(1, 8192);
  const auto pageable = fake_.pageable_copies();
  auto ring = pin(8192, 7, 1);
  auto lane = open_lane(1);
  EXPECT_EQ(must(lane->poll()), 0U);
  EXPECT_EQ(must(lane->copy(Direction::read, memory, ring->data(), 4096)), 1U);
  EXPECT_EQ(must(lane->copy(Direction::read, memory + 4096, ring->data(), 4096)), 2U);
  EXPECT_EQ(must(finish(*lane, 2)), 2U);
  EXPECT_THAT(device_bytes(memory, 8192), Each(7));
  const std::vector<unsigned char> other(8192, 9);
  fake_.write(memory, other.data(), other.size());
  ASSERT_EQ(must(lane->copy(Direction::write, memory, ring->data(), 8192)), 3U);
  EXPECT_EQ(must(finish(*lane, 3)), 3U);
  EXPECT_EQ(std::memcmp(ring->data(), other.data(), other.size()), 0);
  EXPECT_EQ(fake_.pageable_copies(), pageable);
  fake_.release(memory);
}

TEST_F(Copies, NoTicketIsDoneBeforeItsCopyRan) {
  const cuda::DevicePointer memory = fake_.allocate(0, 4096);
  auto ring = pin(4096, 1);
  auto lane = open_lane();
  fake_.hold(1);
  ASSERT_EQ(must(lane->copy(Direction::read, memory, ring->data(), 4096)), 1U);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(must(lane->poll()), 0U);
  EXPECT_THAT(device_bytes(memory, 4096), Each(0));
  fake_.hold(0);
  EXPECT_EQ(must(finish(*lane, 1)), 1U);
  EXPECT_THAT(device_bytes(memory, 4096), Each(1));
  fake_.release(memory);
}

TEST_F(Copies, ClosingALaneOrUnpinningWaitsForTheCopies) {
  const cuda::DevicePointer memory = fake_.allocate(0, 2 << 20);
  auto ring = pin(1 << 20, 3);
  auto lane = open_lane();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(lane->copy(Direction::read, memory, ring->data(), 1 << 20).ok());
  }
  ring.reset();
  EXPECT_EQ(must(lane->poll()), 20U);
  ring = pin(1 << 20, 4);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(lane->copy(Direction::read, memory + (1 << 20), ring->data(), 1 << 20).ok());
  }
  lane.reset();
  EXPECT_THAT(device_bytes(memory, 1 << 20), Each(3));
  EXPECT_THAT(device_bytes(memory + (1 << 20), 1 << 20), Each(4));
  fake_.release(memory);
}

TEST_F(Copies, AFailureIsStickyAndNothingIsInFlightAfterIt) {
  const cuda::DevicePointer memory = fake_.allocate(0, 4096);
  auto ring = pin(4096);
  auto lane = open_lane();
  fake_.fail_copies(cuda::illegal_address);
  ASSERT_TRUE(lane->copy(Direction::read, memory, ring->data(), 4096).ok());
  const auto failed = finish(*lane, 1);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().kind, ErrorKind::device);
  EXPECT_EQ(failed.error().origin, ErrorOrigin::cuda);
  EXPECT_EQ(failed.error().code, 700);
  EXPECT_THAT(failed.error().why, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_THAT(failed.error().attempted, HasSubstr("cuda:0"));
  fake_.fail_copies(0);
  EXPECT_EQ(lane->poll().error(), failed.error());
  EXPECT_EQ(lane->copy(Direction::read, memory, ring->data(), 1).error(), failed.error());
  // The device stays broken until it is reset; then all can be had again.
  EXPECT_EQ(space().open_lane(0).error().code, 700);
  EXPECT_EQ(space().pin(0, 4096).error().code, 700);
  lane.reset();
  ring.reset();
  fake_.lose_device(0);
  EXPECT_TRUE(space().open_lane(0).ok());
  fake_.release(memory);
}

TEST_F(Copies, AFailureToQueueIsToldAtOnce) {
  auto ring = pin(4096);
  auto lane = open_lane();
  const auto failed = lane->copy(Direction::write, 4096, ring->data(), 512);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, 1);
  EXPECT_EQ(failed.error().attempted, "copy 512 bytes from cuda:0");
}

TEST_F(Copies, AResetDeviceIsAnErrorOnceAndARebuildAfter) {
  const cuda::DevicePointer memory = fake_.allocate(0, 4096);
  auto ring = pin(4096);
  auto lane = open_lane();
  ASSERT_TRUE(lane->copy(Direction::read, memory, ring->data(), 4096).ok());
  ASSERT_EQ(fake_.user.primary_reset(0), cuda::success);
  const auto failed = finish(*lane, 1);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().kind, ErrorKind::device);
  EXPECT_EQ(lane->poll().error(), failed.error());
  auto second_ring = pin(4096, 5);
  auto second = open_lane();
  ASSERT_TRUE(second->copy(Direction::read, memory, second_ring->data(), 4096).ok());
  EXPECT_EQ(must(finish(*second, 1)), 1U);
  EXPECT_THAT(device_bytes(memory, 4096), Each(5));
  fake_.release(memory);
}

TEST_F(Copies, AResetThatNobodySawIsNoError) {
  open_lane().reset();
  fake_.lose_device(0);
  EXPECT_TRUE(space().open_lane(0).ok());
  fake_.lose_device(0);
  EXPECT_TRUE(space().pin(0, 4096).ok());
  fake_.lose_device(0);
  EXPECT_TRUE(wait_stream(0, std::nullopt).ok());
}

TEST_F(Copies, UnknownDevicesAndSizesAreRefused) {
  EXPECT_EQ(space().open_lane(2).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(space().open_lane(-1).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(space().pin(0, 0).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(space().pin(0, ~std::size_t{0}).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(space().pin(0, std::size_t{1} << 62).error().kind, ErrorKind::out_of_memory);
}

TEST_F(Copies, OutOfPinnedMemoryIsTold) {
  const auto before = fake_.pinned_bytes();
  fake_.fail_next("cuMemHostRegister", 1, cuda::out_of_memory);
  const auto pinned = space().pin(0, 4096);
  ASSERT_FALSE(pinned.ok());
  EXPECT_EQ(pinned.error().kind, ErrorKind::out_of_memory);
  EXPECT_EQ(pinned.error().attempted, "pin host memory on cuda:0");
  EXPECT_EQ(fake_.pinned_bytes(), before);
}

TEST_F(Copies, PinnedMemoryIsPageAlignedAndAtLeastAsAsked) {
  auto pinned = pin(5000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pinned->data()) % 4096, 0U);
  EXPECT_GE(pinned->size_bytes(), 5000U);
}

TEST_F(Copies, C5_SixtyFourThreadsStartAtOnce) {
  constexpr int threads = 64;
  const cuda::DevicePointer memory = fake_.allocate(0, threads * 4096);
  const auto retains = fake_.calls_of("cuDevicePrimaryCtxRetain");
  std::barrier start(threads);
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&, i] {
        start.arrive_and_wait();
        auto ring = pin(4096, i);
        auto lane = open_lane();
        const auto at = memory + static_cast<cuda::DevicePointer>(i) * 4096;
        EXPECT_TRUE(lane->copy(Direction::read, at, ring->data(), 4096).ok());
        EXPECT_EQ(must(finish(*lane, 1)), 1U);
      });
    }
  }
  for (int i = 0; i < threads; ++i) {
    EXPECT_THAT(device_bytes(memory + static_cast<cuda::DevicePointer>(i) * 4096, 4096), Each(i));
  }
  EXPECT_EQ(fake_.calls_of("cuDevicePrimaryCtxRetain"), retains + 1);
  fake_.release(memory);
}

TEST_F(Copies, G1_PinnedMemoryIsGivenBackAThousandTimes) {
  const auto pinned = fake_.pinned_bytes();
  const auto streams = fake_.streams();
  const auto events = fake_.events();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(space().pin(0, 1 << 20).ok());
    ASSERT_TRUE(space().open_lane(0).ok());
  }
  EXPECT_EQ(fake_.pinned_bytes(), pinned);
  EXPECT_EQ(fake_.streams(), streams);
  EXPECT_EQ(fake_.events(), events);
}

TEST_F(Copies, G3_TheFirstCopyOfALaneCostsNoMoreCallsThanTheSecond) {
  const cuda::DevicePointer memory = fake_.allocate(0, 4096);
  auto ring = pin(4096);
  std::uint64_t ticket = 0;
  const auto calls_of_a_copy = [&](Lane& lane) {
    const auto before = fake_.calls();
    ticket = must(lane.copy(Direction::read, memory, ring->data(), 4096));
    return fake_.calls() - before;
  };
  for (int i = 0; i < 72; ++i) {
    auto lane = open_lane();
    const auto registrations = fake_.calls_of("cuMemHostRegister");
    const auto first = calls_of_a_copy(*lane);
    EXPECT_EQ(calls_of_a_copy(*lane), first);
    EXPECT_EQ(must(finish(*lane, ticket)), 2U);
    EXPECT_EQ(fake_.calls_of("cuMemHostRegister"), registrations);
  }
  fake_.release(memory);
}

// A driver without the call, or one that refuses it: events stand in.
TEST_F(Copies, WithoutTheDevicesMarkEventsTell) {
  const cuda::DevicePointer memory = fake_.allocate(0, 4096);
  auto ring = pin(4096, 5);
  fake_.fail_next("cuStreamWriteValue32", 1, cuda::not_supported);
  auto lane = open_lane();
  const auto marks = fake_.calls_of("cuStreamWriteValue32");
  const auto events = fake_.calls_of("cuEventRecord");
  ASSERT_EQ(must(lane->copy(Direction::read, memory, ring->data(), 4096)), 1U);
  EXPECT_EQ(must(finish(*lane, 1)), 1U);
  EXPECT_THAT(device_bytes(memory, 4096), Each(5));
  EXPECT_EQ(fake_.calls_of("cuStreamWriteValue32"), marks);
  EXPECT_EQ(fake_.calls_of("cuEventRecord"), events + 1);
  fake_.release(memory);
}

// Waiting for a copy that takes long costs next to no calls of the driver.
TEST_F(Copies, LooksAreNoCallsOfTheDriver) {
  const cuda::DevicePointer memory = fake_.allocate(0, 4096);
  auto ring = pin(4096, 5);
  auto lane = open_lane();
  fake_.hold(1);
  ASSERT_EQ(must(lane->copy(Direction::read, memory, ring->data(), 4096)), 1U);
  const auto calls = fake_.calls();
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(must(lane->poll()), 0U);
  EXPECT_LT(fake_.calls() - calls, 100U);
  fake_.hold(0);
  EXPECT_EQ(must(finish(*lane, 1)), 1U);
  fake_.release(memory);
}

TEST_F(Copies, TheCallersContextStaysCurrent) {
  use_device(1);
  cuda::Context before = nullptr;
  cuda::Context after = nullptr;
  driver_.context_current(&before);
  auto ring = pin(4096);
  auto lane = open_lane();
  ASSERT_TRUE(wait_stream(0, std::nullopt).ok());
  lane.reset();
  ring.reset();
  driver_.context_current(&after);
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace straightway::memory
