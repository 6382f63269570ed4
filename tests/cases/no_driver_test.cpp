// A machine without any CUDA driver.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "memory/cuda_space.hpp"
#include "straightway/file.hpp"
#include "tests/temp_file.hpp"

namespace straightway {
namespace {

class NoDriver : public testing::Test {
 protected:
  void SetUp() override {
    if (::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr) {
      GTEST_SKIP() << "there is a libcuda.so.1 here";
    }
  }
};

TEST_F(NoDriver, E7_LoadingSaysWhyNotAndGivesNoSpace) {
  const auto cuda = memory::load_cuda();
  EXPECT_EQ(cuda.space, nullptr);
  EXPECT_FALSE(cuda.state.driver);
  EXPECT_FALSE(cuda.state.simulated);
  EXPECT_EQ(cuda.state.devices, 0);
  EXPECT_NE(cuda.state.why_not.find("no NVIDIA driver"), std::string::npos) << cuda.state.why_not;
  EXPECT_NE(cuda.state.why_not.find("libcuda.so.1"), std::string::npos) << cuda.state.why_not;
  EXPECT_FALSE(memory::driver_is_loaded());
}

TEST_F(NoDriver, E7_HostMemoryIsRead) {
  const tests::TempFolder folder;
  const auto bytes = tests::pattern((std::size_t{1} << 20) + 321);
  const auto context = std::move(Context::create()).value();
  const auto file = std::move(File::open(folder.write("a", bytes), "r", {}, context)).value();
  const auto machine = context->machine(true).value();
  EXPECT_FALSE(machine->cuda_driver);
  EXPECT_NE(machine->cuda_why_not, "");
  std::vector<char> memory(bytes.size());
  const auto receipt = file.read_into({memory.data(), memory.size()});
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_EQ(receipt->moved_bytes, bytes.size());
  EXPECT_EQ(memory, bytes);
}

}  // namespace
}  // namespace straightway
