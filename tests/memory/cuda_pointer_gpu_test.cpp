#include <gmock/gmock.h>

#include "tests/memory/gpu_fixture.hpp"

namespace straightway::memory {
namespace {

using testing::HasSubstr;

class Find : public Gpu {
 protected:
  void expect_found(cuda::DevicePointer at, std::uint64_t size, int device) {
    auto found = space().find(as_pointer(at), size);
    ASSERT_TRUE(found.ok()) << found.error().why;
    ASSERT_TRUE(found->has_value()) << "taken for host memory";
    const MemoryRange& piece = **found;
    EXPECT_EQ(piece.space, SpaceKind::cuda);
    EXPECT_EQ(piece.device, device);
    EXPECT_LE(piece.address, at);
    EXPECT_GE(piece.address + piece.size_bytes, at + size);
  }
  void expect_host(const void* at) {
    auto found = space().find(at, 16);
    ASSERT_TRUE(found.ok()) << found.error().why;
    EXPECT_FALSE(found->has_value());
  }
};

TEST_F(Find, C12_MemoryOfEveryAllocatorIsDeviceMemory) {
  use_device(0);
  cuda::DevicePointer pool = 0;
  cuda::DevicePointer managed = 0;
  const cuda::DevicePointer plain = user_memory(1 << 20);
  ASSERT_EQ(fake_.user.alloc_async(&pool, 1 << 20, nullptr), cuda::success);
  ASSERT_EQ(fake_.user.alloc_managed(&managed, 1 << 20, 1), cuda::success);
  const cuda::DevicePointer segments = fake_.allocate_segments(0, 1 << 20, 3);
  for (const cuda::DevicePointer memory : {plain, pool, managed, segments}) {
    expect_found(memory, 1 << 20, 0);
    expect_found(memory + 12345, 1000, 0);  // interior
    expect_found(memory + (1 << 20) - 1, 1, 0);
  }
  expect_found(segments + 1000, 2 << 20, 0);  // across mappings that lie side by side
  fake_.release(segments);
  for (const cuda::DevicePointer memory : {plain, managed}) fake_.user.free(memory);
  fake_.user.free_async(pool, nullptr);
}

TEST_F(Find, TellsThePieceThatThePointerLiesIn) {
  use_device(0);
  const cuda::DevicePointer plain = user_memory(1 << 20);
  const cuda::DevicePointer segments = fake_.allocate_segments(0, 1 << 20, 3);
  const auto piece = [&](cuda::DevicePointer at, std::uint64_t size) {
    return **space().find(as_pointer(at), size);
  };
  EXPECT_EQ(piece(plain + 12345, 1000), (MemoryRange{SpaceKind::cuda, 0, plain, 1 << 20}));
  // Of mappings that lie side by side those that were looked at.
  EXPECT_EQ(piece(segments + 5, 10), (MemoryRange{SpaceKind::cuda, 0, segments, 1 << 20}));
  EXPECT_EQ(piece(segments + 5, 1 << 20), (MemoryRange{SpaceKind::cuda, 0, segments, 2 << 20}));
  fake_.release(segments);
  fake_.user.free(plain);
}

TEST_F(Find, C15_DeviceComesFromThePointerNotFromTheCurrentOne) {
  use_device(1);
  const cuda::DevicePointer on_one = user_memory(4096);
  use_device(0);
  expect_found(on_one, 4096, 1);
  fake_.user.free(on_one);
}

TEST_F(Find, NeedsNoContextAndMakesNone) {
  const cuda::DevicePointer memory = fake_.allocate(1, 4096);
  const auto contexts = fake_.contexts();
  expect_found(memory, 4096, 1);
  EXPECT_EQ(fake_.contexts(), contexts);
  fake_.release(memory);
}

TEST_F(Find, HostMemoryOfEveryKindIsNotOfTheSpace) {
  use_device(0);
  std::vector<char> heap(64);
  char stack[64] = {};
  void* pinned = nullptr;
  ASSERT_EQ(fake_.user.host_alloc(&pinned, 4096, 0), cuda::success);
  expect_host(heap.data());
  expect_host(stack);
  expect_host(pinned);
  expect_host(nullptr);
  fake_.user.host_free(pinned);
}

TEST_F(Find, TooSmallMemorySaysHowManyBytesThereAre) {
  const cuda::DevicePointer memory = fake_.allocate(0, 1000);
  const cuda::DevicePointer segments = fake_.allocate_segments(0, 4096, 2);
  auto found = space().find(as_pointer(memory + 100), 901);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().kind, ErrorKind::invalid_argument);
  EXPECT_THAT(found.error().attempted, HasSubstr("901 bytes"));
  EXPECT_THAT(found.error().why, HasSubstr("only 900 bytes"));
  found = space().find(as_pointer(segments), 8193);
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().why, HasSubstr("only 8192 bytes"));
  EXPECT_FALSE(space().find(as_pointer(memory), ~std::uint64_t{0}).ok());
  fake_.release(memory);
  fake_.release(segments);
}

TEST_F(Find, FreedMemoryIsNoDeviceMemory) {
  const cuda::DevicePointer memory = fake_.allocate(0, 1000);
  fake_.release(memory);
  expect_host(as_pointer(memory));
}

TEST_F(Find, AnErrorOfTheDriverIsTold) {
  const cuda::DevicePointer memory = fake_.allocate(0, 1000);
  fake_.fail_next("cuPointerGetAttributes", 1, cuda::deinitialized);
  auto found = space().find(as_pointer(memory), 10);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().kind, ErrorKind::device);
  EXPECT_EQ(found.error().origin, ErrorOrigin::cuda);
  EXPECT_EQ(found.error().code, 4);
  EXPECT_THAT(found.error().why, HasSubstr("CUDA_ERROR_DEINITIALIZED"));
  EXPECT_FALSE(found.error().advice.empty());
  fake_.release(memory);
}

TEST_F(Find, ADriverThatNeverSawThePointerMeansHostMemory) {
  fake_.fail_next("cuPointerGetAttributes", 1, cuda::invalid_value);
  int local = 0;
  expect_host(&local);
}

}  // namespace
}  // namespace straightway::memory
