// Memory runs out on the threads that move device memory.

#include <gtest/gtest.h>

#include "straightway/file.hpp"
#include "tests/cases/failing_new.hpp"
#include "tests/memory/gpu_fixture.hpp"
#include "tests/temp_file.hpp"

namespace straightway {
namespace {

class ShortMemoryGpu : public memory::Gpu {
 protected:
  // The call ends in one way or another, and the next one is whole.
  void fail_each(Direction direction) {
    int failures = 0;
    bool all_done = false;
    for (long number = 0; !all_done; ++number) {
      ASSERT_LT(number, 5000);
      ContextOptions two;
      two.threads = 2;
      two.pinned_bytes = 1 << 20;
      const auto context = std::move(Context::create(two)).value();
      auto file = std::move(File::open(path, "r+", {}, context)).value();
      const auto call = [&] {
        return direction == Direction::read ? file.read_into(all) : file.write_from(all);
      };
      const auto result = tests::fail_one(tests::Whose::the_others, number, call);
      all_done = tests::none_failed();
      ASSERT_TRUE(result);
      if (!*result) {
        ++failures;
        ASSERT_EQ(result->error().kind, ErrorKind::out_of_memory) << result->error().message();
      }
      const auto again = call();
      ASSERT_TRUE(again) << again.error().message();
      ASSERT_EQ(again->moved_bytes, bytes.size());
      ASSERT_TRUE(file.close());
      ASSERT_EQ(folder.read("a"), bytes);
      const auto got = device_bytes(device, bytes.size());
      ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), got.begin(),
                             [](char a, unsigned char b) { return a == static_cast<char>(b); }));
    }
    EXPECT_GT(failures, 0);
  }
  void SetUp() override {
    Gpu::SetUp();
    use_device(0);
    device = user_memory(bytes.size());
    fake_.write(device, bytes.data(), bytes.size());
    all = {reinterpret_cast<void*>(device), bytes.size()};
  }

  tests::TempFolder folder;
  std::vector<char> bytes = tests::pattern((3 << 20) + 77);
  std::string path = folder.write("a", bytes);
  memory::cuda::DevicePointer device = 0;
  Memory all;
};

TEST_F(ShortMemoryGpu, AReadEndsAndTheNextIsWhole) { fail_each(Direction::read); }
TEST_F(ShortMemoryGpu, AWriteEndsAndTheNextIsWhole) { fail_each(Direction::write); }

}  // namespace
}  // namespace straightway
