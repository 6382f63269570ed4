#include "api/preallocation.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "os/syscalls.hpp"
#include "straightway/file.hpp"
#include "tests/temp_file.hpp"

namespace straightway {
namespace {

constexpr std::uint64_t mib = 1 << 20;

class PreallocationTest : public testing::Test {
 protected:
  std::uint64_t size() {
    struct stat status{};
    EXPECT_EQ(::stat(path_.c_str(), &status), 0);
    return static_cast<std::uint64_t>(status.st_size);
  }
  std::uint64_t allocated_bytes() {
    struct stat status{};
    EXPECT_EQ(::stat(path_.c_str(), &status), 0);
    return static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  Preallocation make(std::uint64_t offset, std::uint64_t size_bytes) {
    return preallocate(os::kernel(), fd_.get(), size(), {offset, size_bytes});
  }

  tests::TempFolder folder_;
  std::string path_ = folder_.write("file", std::vector<char>(mib, 'x'));
  os::Descriptor fd_{::open(path_.c_str(), O_RDWR | O_CLOEXEC)};
};

TEST_F(PreallocationTest, TheRangeIsAllocatedAndWhatIsBeforeItStaysAHole) {
  const auto made = make(8 * mib, 2 * mib);
  EXPECT_EQ(made.before_bytes, mib);
  EXPECT_EQ(made.end_bytes, 10 * mib);
  EXPECT_EQ(size(), 10 * mib);
  EXPECT_GE(allocated_bytes(), 3 * mib);
  EXPECT_LT(allocated_bytes(), 5 * mib);
}

TEST_F(PreallocationTest, WithinTheFileThereIsNothingToDo) {
  EXPECT_EQ(make(0, mib).end_bytes, 0U);
  EXPECT_EQ(size(), mib);
}

TEST_F(PreallocationTest, UndoGivesTheOldLengthBackUnlessOthersWroteOn) {
  const FileRange range{mib, 3 * mib};
  auto made = make(range.offset, range.size_bytes);
  undo(os::kernel(), fd_.get(), made, range);
  EXPECT_EQ(size(), mib);
  made = make(range.offset, range.size_bytes);
  ASSERT_EQ(::ftruncate(fd_.get(), 5 * mib), 0);
  undo(os::kernel(), fd_.get(), made, range);
  EXPECT_EQ(size(), 5 * mib);
}

TEST_F(PreallocationTest, UndoNeverCutsBeforeTheRange) {
  const FileRange later{4 * mib, mib};
  const auto made = make(later.offset, later.size_bytes);  // another write fills what is before it
  undo(os::kernel(), fd_.get(), made, later);
  EXPECT_EQ(size(), 4 * mib);
  undo(os::kernel(), fd_.get(), {}, later);
  EXPECT_EQ(size(), 4 * mib);
}

// Through the front door: one that ends by its deadline, and one that is whole.
TEST_F(PreallocationTest, ADirectWriteThatFailsLeavesTheLengthAlone) {
  const std::unique_ptr<void, decltype(&std::free)> bytes(std::aligned_alloc(4096, 8 * mib),
                                                          std::free);
  ASSERT_TRUE(bytes);
  std::memset(bytes.get(), 'y', 8 * mib);
  const auto file = std::move(File::open(path_, "r+")).value();
  CallOptions options;
  options.cache = Cache::bypass;
  options.offset = mib;
  options.deadline = std::chrono::nanoseconds(1);
  EXPECT_FALSE(file.write_from({bytes.get(), 8 * mib}, options));
  EXPECT_EQ(size(), mib);
  options.deadline.reset();
  EXPECT_TRUE(file.write_from({bytes.get(), 8 * mib}, options));
  EXPECT_EQ(size(), 9 * mib);
}

}  // namespace
}  // namespace straightway
