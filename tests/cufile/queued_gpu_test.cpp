// Transfers in the order of a stream, through the exported functions, on the simulated GPU.

#include <gmock/gmock.h>

#include <vector>

#include "cufile/starter.hpp"
#include "tests/cufile/library.hpp"

namespace straightway::cufile {
namespace {

constexpr std::size_t MiB = 1 << 20;

class Queued : public CufileGpuTest {
 protected:
  Queued() : bytes(tests::pattern(4 * MiB + 100)), path(folder.write("data", bytes)) {}
  void SetUp() override {
    CufileGpuTest::SetUp();
    file = register_fd(open_file(path));
    device = static_cast<char*>(device_memory(4 * MiB));
    ASSERT_EQ(cuda.stream_create(&stream, memory::cuda::stream_non_blocking), 0);
  }
  void sync() { ASSERT_EQ(cuda.stream_synchronize(stream), 0); }

  // Arguments that live until the stream is past them.
  struct Arguments {
    std::size_t size = 0;
    off_t file_offset = 0;
    off_t memory_offset = 0;
    ssize_t moved = -77;
  };
  abi::Error read(void* memory, Arguments& a) {
    return library.cuFileReadAsync(file, memory, &a.size, &a.file_offset, &a.memory_offset,
                                   &a.moved, stream);
  }
  abi::Error write(void* memory, Arguments& a) {
    return library.cuFileWriteAsync(file, memory, &a.size, &a.file_offset, &a.memory_offset,
                                    &a.moved, stream);
  }

  std::vector<char> bytes;
  std::string path;
  void* file = nullptr;
  char* device = nullptr;
  memory::cuda::Stream stream = nullptr;
};

TEST_F(Queued, ArgumentsAreReadWhenTheStreamComesToThem) {
  fake.hold(1);
  Arguments late{1, 0, 0};
  ASSERT_EQ(read(device, late).code, 0);
  late.size = 5000;
  late.file_offset = 3;
  late.memory_offset = 8;
  fake.hold(0);
  sync();
  EXPECT_EQ(late.moved, 5000);
  EXPECT_TRUE(
      std::equal(bytes.begin() + 3, bytes.begin() + 5003, device_bytes(device + 8, 5000).begin()));
}

TEST_F(Queued, PromisedArgumentsAreReadAtTheCall) {
  ASSERT_EQ(library.cuFileStreamRegister(stream, 7).code, 0);
  fake.hold(1);
  Arguments early{100, 10, 0};
  ASSERT_EQ(read(device, early).code, 0);
  early.size = 1;
  early.file_offset = 0;
  early.memory_offset = 50;
  fake.hold(0);
  sync();
  EXPECT_EQ(early.moved, 100);
  EXPECT_TRUE(
      std::equal(bytes.begin() + 10, bytes.begin() + 110, device_bytes(device, 100).begin()));
}

TEST_F(Queued, TheStreamsOrderHolds) {
  const auto at = reinterpret_cast<std::uintptr_t>(device);
  ASSERT_EQ(fake.fill_later(at, 'x', 4096, stream, 20'000), 0);
  Arguments out{4096, 0, 0};
  ASSERT_EQ(write(device, out).code, 0);  // what the fill has written
  Arguments in{4096, 8192, 0};
  ASSERT_EQ(read(device, in).code, 0);  // after that
  sync();
  EXPECT_EQ(out.moved, 4096);
  EXPECT_EQ(in.moved, 4096);
  EXPECT_EQ(folder.read("data")[100], 'x');
  EXPECT_TRUE(
      std::equal(bytes.begin() + 8192, bytes.begin() + 12288, device_bytes(device, 4096).begin()));
}

TEST_F(Queued, ResultsAndErrorsComeInTheirPlace) {
  std::vector<char> host(4096);
  ASSERT_EQ(library.cuFileBufRegister(device, MiB, 0).code, 0);
  Arguments short_read{4096, static_cast<off_t>(4 * MiB), 0};
  Arguments empty{0, 0, 0};
  Arguments negative{1, -1, 0};
  Arguments before{1, 0, -1};
  Arguments beyond{2 * MiB, 0, 0};
  Arguments on_host{4096, 1, 0};
  for (Arguments* one : {&short_read, &empty, &negative, &before, &beyond}) {
    ASSERT_EQ(read(device, *one).code, 0);
  }
  ASSERT_EQ(read(host.data(), on_host).code, 0);
  sync();
  EXPECT_EQ(short_read.moved, 100);
  EXPECT_EQ(empty.moved, 0);
  EXPECT_EQ(negative.moved, -1);
  EXPECT_EQ(before.moved, -5030);  // the vendor's writes outside the buffer
  EXPECT_EQ(beyond.moved, -5017);
  EXPECT_EQ(on_host.moved, 4096);
  EXPECT_TRUE(std::equal(host.begin(), host.end(), bytes.begin() + 1));
}

TEST_F(Queued, BadCallsAreRefusedAtOnce) {
  Arguments a{1, 0, 0};
  EXPECT_EQ(read(nullptr, a).code, 5022);
  EXPECT_EQ(a.moved, -22);
  a.moved = 0;
  EXPECT_EQ(library
                .cuFileReadAsync(nullptr, device, &a.size, &a.file_offset, &a.memory_offset,
                                 &a.moved, stream)
                .code,
            5022);
  EXPECT_EQ(a.moved, -22);
  EXPECT_EQ(library
                .cuFileReadAsync(file, device, nullptr, &a.file_offset, &a.memory_offset, &a.moved,
                                 stream)
                .code,
            5022);
  EXPECT_EQ(
      library
          .cuFileReadAsync(file, device, &a.size, &a.file_offset, &a.memory_offset, nullptr, stream)
          .code,
      5022);
  void* garbage = reinterpret_cast<void*>(0x5);
  EXPECT_EQ(library
                .cuFileReadAsync(garbage, device, &a.size, &a.file_offset, &a.memory_offset,
                                 &a.moved, stream)
                .code,
            5027);
}

TEST_F(Queued, StreamsAreRegisteredOnce) {
  EXPECT_EQ(library.cuFileStreamDeregister(stream).code, 5022);
  EXPECT_EQ(library.cuFileStreamRegister(stream, 0xffff).code, 0);
  EXPECT_EQ(library.cuFileStreamRegister(stream, 0).code, 5022);
  EXPECT_EQ(library.cuFileStreamDeregister(stream).code, 0);
  EXPECT_EQ(library.cuFileStreamDeregister(stream).code, 5022);
  EXPECT_EQ(library.cuFileStreamRegister(nullptr, 0).code, 0);
}

TEST_F(Queued, ACapturingStreamIsRefusedAndStaysIntact) {
  ASSERT_EQ(fake.user.begin_capture(stream, memory::cuda::capture_thread_local), 0);
  Arguments a{1, 0, 0};
  EXPECT_EQ(read(device, a).code, 5038);
  void* graph = nullptr;
  EXPECT_EQ(fake.user.end_capture(stream, &graph), 0);
}

// D11: many at once, and large ones: each whole.
TEST_F(Queued, D11_ManyTransfersAndLargeOnesAreWhole) {
  std::vector<Arguments> all(256);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = {4096, static_cast<off_t>(i * 4096), static_cast<off_t>(i * 4096)};
    ASSERT_EQ(read(device, all[i]).code, 0);
  }
  sync();
  for (const Arguments& one : all) ASSERT_EQ(one.moved, 4096);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + MiB, device_bytes(device, MiB).begin()));
  ASSERT_EQ(::truncate(path.c_str(), 64 * MiB), 0);
  Arguments large{64 * MiB, 0, 0};
  ASSERT_EQ(read(device_memory(64 * MiB), large).code, 0);
  sync();
  EXPECT_EQ(large.moved, static_cast<ssize_t>(64 * MiB));
}

TEST_F(Queued, TheDriverMayCloseMeanwhile) {
  fake.hold(1);
  Arguments a{MiB, 0, 0};
  ASSERT_EQ(read(device, a).code, 0);
  library.cuFileHandleDeregister(file);
  library.cuFileDriverClose_v2();
  fake.hold(0);
  sync();
  EXPECT_EQ(a.moved, -5027);
}

TEST(Starter, RunsTasksInOrder) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int> seen;
  for (int i = 0; i < 100; ++i) {
    Starter::of_process().post([&, i] {
      const std::lock_guard lock(mutex);
      seen.push_back(i);
      changed.notify_all();
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return seen.size() == 100; });
  EXPECT_TRUE(std::ranges::is_sorted(seen));
}

}  // namespace
}  // namespace straightway::cufile
