// The simulated GPU must be as unforgiving as a real one: what a test would miss here, a user
// finds.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "tests/memory/gpu_fixture.hpp"

namespace straightway::memory {
namespace {

using testing::Each;

class SimulatedGpu : public Gpu {
 protected:
  // Queues one copy of pinned memory into device memory and returns at once.
  void copy_later(cuda::DevicePointer to, const void* from, std::size_t size, cuda::Stream stream) {
    ASSERT_EQ(driver_.copy_to_device(to, from, size, stream), cuda::success);
  }
};

TEST_F(SimulatedGpu, ACpuTouchOfDeviceMemoryFaults) {
  const auto memory = fake_.allocate(0, 4096);
  auto* bytes = static_cast<char*>(const_cast<void*>(as_pointer(memory)));
  // By SIGSEGV; a sanitizer makes an exit status of it.
  const auto died = [](int status) { return status != 0; };
  EXPECT_EXIT(
      {
        *bytes = 1;
        _exit(0);
      },
      died, "");
  const int file = memfd_create("file", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, 4096), 0);
  EXPECT_EQ(pread(file, bytes, 4096, 0), -1);
  EXPECT_EQ(errno, EFAULT);
  close(file);
  fake_.release(memory);
}

TEST_F(SimulatedGpu, ASlotReusedTooEarlyGivesWrongBytes) {
  use_device(0);
  const auto memory = user_memory(4096);
  void* slot = nullptr;
  ASSERT_EQ(fake_.user.host_alloc(&slot, 4096, 0), cuda::success);
  const cuda::Stream stream = user_stream(cuda::stream_non_blocking);
  std::memset(slot, 1, 4096);
  fake_.hold(1);
  copy_later(memory, slot, 4096, stream);
  std::memset(slot, 2, 4096);  // the mistake
  fake_.hold(0);
  ASSERT_EQ(driver_.stream_synchronize(stream), cuda::success);
  EXPECT_THAT(device_bytes(memory, 4096), Each(2));
  driver_.stream_destroy(stream);
  fake_.user.host_free(slot);
  fake_.user.free(memory);
}

TEST_F(SimulatedGpu, PageableMemoryIsTakenAtOnceAndCounted) {
  use_device(0);
  const auto memory = user_memory(64);
  std::vector<char> pageable(64, 1);
  const auto before = fake_.pageable_copies();
  fake_.hold(1);
  copy_later(memory, pageable.data(), 64, nullptr);
  std::memset(pageable.data(), 2, 64);
  fake_.hold(0);
  ASSERT_EQ(driver_.stream_synchronize(nullptr), cuda::success);
  EXPECT_THAT(device_bytes(memory, 64), Each(1));
  EXPECT_EQ(fake_.pageable_copies(), before + 1);
  fake_.user.free(memory);
}

TEST_F(SimulatedGpu, StreamsAreInOrderAndNonBlockingOnesOnTheirOwn) {
  use_device(0);
  const auto memory = user_memory(64);
  const cuda::Stream stream = user_stream(cuda::stream_non_blocking);
  cuda::Event event = nullptr;
  ASSERT_EQ(driver_.event_create(&event, 0), cuda::success);
  std::atomic<bool> may_end = false;
  const auto wait = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); };
  ASSERT_EQ(fake_.user.launch_host(nullptr, wait, &may_end), cuda::success);  // legacy stream
  ASSERT_EQ(fake_.fill_later(memory, 2, 64, stream, 3'000), 0);
  ASSERT_EQ(fake_.fill_later(memory, 3, 64, stream, 0), 0);
  ASSERT_EQ(driver_.event_record(event, stream), cuda::success);
  ASSERT_EQ(driver_.event_synchronize(event), cuda::success);  // hangs if it waits for the other
  EXPECT_EQ(driver_.stream_query(stream), cuda::success);
  EXPECT_EQ(driver_.stream_query(nullptr), cuda::not_ready);
  EXPECT_THAT(device_bytes(memory, 64), Each(3));
  may_end = true;
  may_end.notify_all();
  ASSERT_EQ(driver_.stream_synchronize(nullptr), cuda::success);
  driver_.event_destroy(event);
  driver_.stream_destroy(stream);
  fake_.user.free(memory);
}

TEST_F(SimulatedGpu, AnUnsafeCallBreaksACapture) {
  use_device(0);
  const cuda::Stream stream = user_stream(cuda::stream_non_blocking);
  ASSERT_EQ(fake_.user.begin_capture(stream, cuda::capture_global), cuda::success);
  cuda::DevicePointer memory = 0;
  EXPECT_EQ(fake_.user.alloc(&memory, 64), cuda::stream_capture_unsupported);
  void* graph = nullptr;
  EXPECT_EQ(fake_.user.end_capture(stream, &graph), cuda::stream_capture_invalidated);
  driver_.stream_destroy(stream);
}

TEST_F(SimulatedGpu, SynchronousCopiesAndFills) {
  use_device(0);
  const auto memory = user_memory(64);
  char back[64] = {};
  ASSERT_EQ(fake_.user.memset_sync(memory, 9, 64), cuda::success);
  ASSERT_EQ(fake_.user.memcpy_sync(reinterpret_cast<std::uintptr_t>(back), memory, 64),
            cuda::success);
  EXPECT_THAT(back, Each(9));
  EXPECT_EQ(fake_.user.memset_sync(memory + 1, 9, 64), cuda::invalid_value);
  fake_.user.free(memory);
}

TEST_F(SimulatedGpu, InjectedFailuresComeAsOftenAsAskedFor) {
  fake_.fail_next("cuDeviceGetCount", 2, cuda::operating_system);
  int count = 0;
  EXPECT_EQ(driver_.device_count(&count), cuda::operating_system);
  EXPECT_EQ(driver_.device_count(&count), cuda::operating_system);
  EXPECT_EQ(driver_.device_count(&count), cuda::success);
  EXPECT_EQ(count, 2);
}

TEST_F(SimulatedGpu, FindsItsFunctionsByTheirPlainNames) {
  using Look = cuda::Status (*)(const char*, void**, int, std::uint64_t, int*);
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto look = reinterpret_cast<Look>(dlsym(library, "cuGetProcAddress_v2"));
  void* found = nullptr;
  EXPECT_EQ(look("cuMemAlloc", &found, 13000, 0, nullptr), cuda::success);
  EXPECT_EQ(found, reinterpret_cast<void*>(fake_.user.alloc));
  EXPECT_EQ(look("cuNoSuchThing", &found, 13000, 0, nullptr), cuda::not_found);
  dlclose(library);
}

}  // namespace
}  // namespace straightway::memory
