#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "tests/memory/gpu_fixture.hpp"

namespace straightway::memory {
namespace {

// Each runs in a process of its own, started afresh, since the driver is loaded once in each.
class Load : public testing::Test {
 protected:
  Load() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

[[noreturn]] void leave(bool as_expected) {
  std::cerr << (as_expected ? "as expected" : "not as expected") << std::endl;
  _exit(as_expected ? 0 : 1);
}

TEST_F(Load, C14_ADriverThatNobodyUsedBeforeWorks) {
  EXPECT_EXIT(
      {
        const Cuda cuda = load_cuda();
        const auto lane = cuda.space->open_lane(1);
        leave(cuda.state.driver && cuda.state.devices == 2 && cuda.state.simulated &&
              cuda.state.why_not.empty() && lane.ok());
      },
      testing::ExitedWithCode(0), "as expected");
}

TEST_F(Load, TellsWhetherTheDriverIsInTheProcess) {
  EXPECT_EXIT(
      {
        const bool before = driver_is_loaded() || driver_is_loaded();
        load_cuda();
        leave(!before && driver_is_loaded() && driver_is_loaded());
      },
      testing::ExitedWithCode(0), "as expected");
}

TEST_F(Load, LoadingMakesNoContext) {
  EXPECT_EXIT(
      {
        const Cuda cuda = load_cuda();
        leave(cuda.space != nullptr && fakes::FakeCuda().contexts() == 0);
      },
      testing::ExitedWithCode(0), "as expected");
}

TEST_F(Load, NoDeviceIsSaid) {
  EXPECT_EXIT(
      {
        setenv("FAKE_CUDA_DEVICES", "0", 1);
        const Cuda cuda = load_cuda();
        std::cerr << cuda.state.why_not << '\n';
        leave(cuda.space == nullptr && cuda.state.devices == 0);
      },
      testing::ExitedWithCode(0), "sees no device");
}

TEST_F(Load, ADriverThatDoesNotStartIsSaidByName) {
  EXPECT_EXIT(
      {
        setenv("FAKE_CUDA_INIT", "3", 1);
        const Cuda cuda = load_cuda();
        std::cerr << cuda.state.why_not << '\n';
        leave(cuda.space == nullptr && !cuda.state.driver);
      },
      testing::ExitedWithCode(0), "cuInit failed: CUDA_ERROR_NOT_INITIALIZED");
}

// The forked child answers by its exit status.
template <class F>
int in_a_child(F work) {
  const pid_t child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

template <class T>
bool is_forked(const Result<T>& result) {
  return !result.ok() && result.error().kind == ErrorKind::forked && !result.error().why.empty() &&
         !result.error().advice.empty();
}

class Fork : public Gpu {};

TEST_F(Fork, EveryCallOfTheChildIsRefusedWithoutTouchingTheDriver) {
  auto ring = must(space().pin(0, 4096));
  auto lane = must(space().open_lane(0));
  const cuda::DevicePointer memory = fake_.allocate(0, 4096);
  ASSERT_TRUE(lane->copy(Direction::read, memory, ring->data(), 4096).ok());
  EXPECT_EQ(in_a_child([&] {
              const auto calls = fake_.calls();
              const bool refused =
                  is_forked(space().find(as_pointer(memory), 4096)) &&
                  is_forked(space().pin(0, 4096)) && is_forked(space().open_lane(0)) &&
                  is_forked(wait_stream(0, std::nullopt)) && is_forked(lane->poll()) &&
                  is_forked(lane->copy(Direction::read, memory, nullptr, 1));
              lane.reset();
              ring.reset();
              return refused && fake_.calls() == calls;
            }),
            0);
  EXPECT_EQ(must(finish(*lane, 1)), 1U);
  fake_.release(memory);
}

}  // namespace
}  // namespace straightway::memory
