#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "os/descriptor.hpp"
#include "tests/memory/gpu_fixture.hpp"
#include "tests/temp_file.hpp"
#include "transport/pinned_cache.hpp"

namespace straightway::transport {
namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t file_bytes = 64 * page + 99;

class PinnedCacheTest : public memory::Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    use_device(0);
    device = user_memory(file_bytes);
    file = os::Descriptor(::open(folder.write("a", bytes).c_str(), O_RDWR | O_CLOEXEC));
    pins = memory::must(memory::FilePins::make(
        cuda_.space, std::make_shared<memory::PinBudget>(1 << 30), file.get(), nullptr, {}));
    transport.emplace(memory::must(space().open_lane(0)));
    attachment = memory::must(transport->attach(FileRef{file.get(), -1, pins}));
  }
  void TearDown() override {
    transport.reset();
    pins->close(true);
    Gpu::TearDown();
  }
  void pin(FileRange range) { memory::must(pins->add({range}, -1)); }
  Segment segment(std::uint64_t offset, std::uint64_t size_bytes) {
    Segment made;
    made.cookie = ++last_cookie;
    made.file = attachment.token;
    made.address = device + offset;
    made.file_offset = made.envelope_offset = offset;
    made.size_bytes = made.envelope_bytes = size_bytes;
    return made;
  }
  Completion finish_one() {
    Completion completion;
    while (transport->reap({&completion, 1}) == 0) std::this_thread::yield();
    return completion;
  }
  std::int64_t run(const Segment& one) {
    EXPECT_EQ(transport->submit({&one, 1}), 1U);
    const auto completion = finish_one();
    EXPECT_EQ(completion.cookie, one.cookie);
    return completion.result;
  }
  bool right(std::uint64_t offset, std::uint64_t size_bytes) {
    const auto got = device_bytes(device + offset, size_bytes);
    return std::memcmp(got.data(), bytes.data() + offset, size_bytes) == 0;
  }

  tests::TempFolder folder;
  const std::vector<char> bytes = tests::pattern(file_bytes);
  os::Descriptor file;
  std::shared_ptr<memory::FilePins> pins;
  std::optional<PinnedCache> transport;
  Attachment attachment;
  memory::cuda::DevicePointer device = 0;
  std::uint64_t last_cookie = 0;
};

TEST_F(PinnedCacheTest, ASegmentMayLieOnSeveralPinnedRanges) {
  pin({0, 3 * page});
  pin({0, 7 * page});
  pin({7 * page, 100 * page});
  EXPECT_EQ(run(segment(17, file_bytes - 17)), static_cast<std::int64_t>(file_bytes - 17));
  EXPECT_TRUE(right(17, file_bytes - 17));
  EXPECT_EQ(run(segment(2 * page, 1)), 1);
}

TEST_F(PinnedCacheTest, WhatIsNotPinnedIsStale) {
  pin({0, page});
  EXPECT_EQ(run(segment(page, 1)), -ESTALE);
  EXPECT_EQ(run(segment(page - 1, 2)), -ESTALE);
  EXPECT_EQ(run(segment(page - 1, 1)), 1);
}

TEST_F(PinnedCacheTest, AFileThatChangesUnderACopyIsStale) {
  pin({0, file_bytes});
  fake_.hold(1);
  const auto one = segment(0, file_bytes);
  ASSERT_EQ(transport->submit({&one, 1}), 1U);
  ASSERT_EQ(::ftruncate(file.get(), page), 0);
  fake_.hold(0);
  EXPECT_EQ(finish_one().result, -ESTALE);
  EXPECT_EQ(run(segment(0, page)), -ESTALE);  // all pins are given up
}

TEST_F(PinnedCacheTest, WritesAndOtherFilesAreRefused) {
  auto write = segment(0, 1);
  write.direction = Direction::write;
  EXPECT_EQ(run(write), -EOPNOTSUPP);
  EXPECT_FALSE(transport->attach(FileRef{file.get(), -1}));
}

TEST_F(PinnedCacheTest, ALaneThatFailsFailsAllThatIsUnderWay) {
  pin({0, file_bytes});
  fake_.hold(1);
  const std::vector<Segment> two = {segment(0, page), segment(page, page)};
  ASSERT_EQ(transport->submit(two), 2U);
  fake_.fail_copies(memory::cuda::launch_failed);
  fake_.hold(0);
  for (int i = 0; i < 2; ++i) {
    const auto completion = finish_one();
    EXPECT_EQ(completion.result, -EIO);
    ASSERT_NE(completion.error, nullptr);
    EXPECT_EQ(completion.error->kind, ErrorKind::device);
  }
  EXPECT_EQ(run(segment(0, 1)), -EIO);
}

TEST_F(PinnedCacheTest, FewBytesAreInFlightAtATime) {
  pin({0, file_bytes});
  fake_.hold(1);
  std::size_t taken = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto one = segment(0, 1);
    taken += transport->submit({&one, 1});
  }
  EXPECT_EQ(taken, transport->capabilities().depth);
  fake_.hold(0);
  for (std::size_t i = 0; i < taken; ++i) EXPECT_EQ(finish_one().result, 1);
}

TEST_F(PinnedCacheTest, OneRangeAtOnce) {
  pin({page, 4 * page});
  auto desk = memory::must(space().open_desk(0, page));
  const FileRange inside{page + 3, 3 * page};  // larger than the desk
  auto copied = copy_pinned(*pins, *desk, inside, device + inside.offset, {});
  ASSERT_TRUE(copied) << copied.error().message();
  EXPECT_TRUE(*copied);
  EXPECT_TRUE(right(inside.offset, inside.size_bytes));
  EXPECT_FALSE(*copy_pinned(*pins, *desk, {0, page + 1}, device, {}));
  ASSERT_EQ(::pwrite(file.get(), "new", 3, 0), 3);
  EXPECT_FALSE(*copy_pinned(*pins, *desk, inside, device, {}));
}

}  // namespace
}  // namespace straightway::transport
