// Memory runs out on the threads that move device memory.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <optional>

#include "memory/file_pins.hpp"
#include "os/descriptor.hpp"
#include "straightway/file.hpp"
#include "tests/cases/failing_new.hpp"
#include "tests/memory/gpu_fixture.hpp"
#include "tests/temp_file.hpp"

namespace straightway {
namespace {

class ShortMemoryGpu : public memory::Gpu {
 protected:
  // Where asked. pins_change: the file changes then, so that the read gives the pin up.
  std::optional<Pin> pin_of(const File& file) {
    if (!pinned) return {};
    auto pin = file.pin();
    EXPECT_TRUE(pin) << pin.error().message();
    if (pins_change) {
      EXPECT_EQ(::chmod(path.c_str(), 0644), 0);
    }
    return std::move(*pin);
  }
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
      std::optional<Pin> pin;
      ASSERT_NO_FATAL_FAILURE(pin = pin_of(file));
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
      ASSERT_TRUE(device_chars(device, bytes.size()) == bytes);
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
  bool pinned = false;
  bool pins_change = false;
};

TEST_F(ShortMemoryGpu, AReadEndsAndTheNextIsWhole) { fail_each(Direction::read); }
TEST_F(ShortMemoryGpu, AWriteEndsAndTheNextIsWhole) { fail_each(Direction::write); }
TEST_F(ShortMemoryGpu, APinnedReadEndsAndTheNextIsWhole) {
  pinned = true;
  fail_each(Direction::read);
}
TEST_F(ShortMemoryGpu, AReadThatGivesThePinUpEndsAndTheNextIsWhole) {
  pinned = pins_change = true;
  fail_each(Direction::read);
}

// Nothing of a pin stays behind, neither pages nor a share of the budget.
TEST_F(ShortMemoryGpu, APinThatFindsNoMemoryHoldsNothing) {
  const os::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto cuda = memory::load_cuda();
  const auto budget = std::make_shared<memory::PinBudget>(UINT64_MAX);
  const std::vector<FileRange> ranges = {{0, 4096}, {8192, 4096}, {65536, 32768}};
  const auto make = [&] {
    return std::move(memory::FilePins::make(cuda.space, budget, file.get(), nullptr,
                                            {.size_bytes = 4096, .helpers = 2}))
        .value();
  };
  ASSERT_TRUE(make()->add(ranges, 0));  // opens the device
  const auto before = fake_.pinned_bytes();
  bool all_done = false;
  for (long number = 0; !all_done; ++number) {
    ASSERT_LT(number, 1000);
    const auto pins = make();
    const auto added =
        tests::fail_one(tests::Whose::the_callers, number, [&] { return pins->add(ranges, 0); });
    all_done = tests::none_failed();
    if (added && *added) continue;
    EXPECT_EQ(fake_.pinned_bytes(), before) << number;
    EXPECT_EQ(budget->used_bytes(), 0U) << number;
  }
}

}  // namespace
}  // namespace straightway
