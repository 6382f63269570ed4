// Whatever becomes of a pinned file before, between and during reads: a read gives the bytes that
// the file has. On the real kernel, with pages that the simulated GPU really holds.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <ostream>
#include <thread>

#include "tests/api/pin_fixture.hpp"
#include "tests/cases/in_child.hpp"

namespace straightway {
namespace {

using tests::PinTest;

constexpr std::size_t page = 4096;
constexpr std::size_t file_bytes = (2 << 20) + 321;

// What another process does to the file; must succeed.
struct Change {
  const char* name;
  const char* folder;  // "" : the temporary one (a disk's file system); else this
  bool keeps_pin;      // the pages stay the file's own
  bool (*make)(const std::string& path);
};
std::ostream& operator<<(std::ostream& to, const Change& change) { return to << change.name; }

struct OpenedFd {
  OpenedFd(const std::string& path, int flags) : fd(::open(path.c_str(), flags, 0600)) {}
  ~OpenedFd() { ::close(fd); }
  OpenedFd(const OpenedFd&) = delete;
  OpenedFd& operator=(const OpenedFd&) = delete;
  int fd;
};

bool write_direct(const std::string& path) {
  const OpenedFd file(path, O_WRONLY | O_DIRECT);
  void* block = std::aligned_alloc(page, 2 * page);
  std::memset(block, 'D', 2 * page);
  const bool wrote = ::pwrite(file.fd, block, 2 * page, page) == 2 * page;
  std::free(block);
  return wrote;
}
bool write_buffered(const std::string& path) {
  const OpenedFd file(path, O_WRONLY);
  const std::string text(5000, 'W');
  return ::pwrite(file.fd, text.data(), text.size(), 3000) == 5000;
}
bool write_mapped(const std::string& path) {
  const OpenedFd file(path, O_RDWR);
  void* mapped = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, page);
  if (mapped == MAP_FAILED) return false;
  std::memset(mapped, 'M', page);
  return ::munmap(mapped, page) == 0;
}
bool punch(const std::string& path) {
  const OpenedFd file(path, O_WRONLY);
  return ::fallocate(file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2 * page, 3 * page) == 0;
}
bool zero_range(const std::string& path) {
  const OpenedFd file(path, O_WRONLY);
  return ::fallocate(file.fd, FALLOC_FL_ZERO_RANGE, 2 * page, 3 * page) == 0;
}
bool collapse(const std::string& path) {
  const OpenedFd file(path, O_WRONLY);
  return ::fallocate(file.fd, FALLOC_FL_COLLAPSE_RANGE, 0, 2 * page) == 0;
}
bool shrink(const std::string& path) { return ::truncate(path.c_str(), 100 * page + 7) == 0; }
bool shrink_and_grow(const std::string& path) {
  return ::truncate(path.c_str(), page) == 0 &&
         ::truncate(path.c_str(), static_cast<off_t>(file_bytes)) == 0;
}
bool rewrite(const std::string& path) {
  const OpenedFd file(path, O_WRONLY | O_TRUNC);
  const auto other = tests::pattern(file_bytes, 9);
  return ::write(file.fd, other.data(), other.size()) == static_cast<ssize_t>(file_bytes);
}
bool empty(const std::string& path) { return ::truncate(path.c_str(), 0) == 0; }
bool unlink_it(const std::string& path) { return ::unlink(path.c_str()) == 0; }
// The File goes on reading the old inode, which is right.
bool replace(const std::string& path) {
  const std::string other = path + ".new";
  const OpenedFd file(other, O_WRONLY | O_CREAT | O_TRUNC);
  return ::write(file.fd, "other", 5) == 5 && ::rename(other.c_str(), path.c_str()) == 0;
}

class ChangedFile : public PinTest, public testing::WithParamInterface<Change> {
 protected:
  void SetUp() override {
    PinTest::SetUp();
    if (*GetParam().folder == '\0') return;
    std::string name = std::string(GetParam().folder) + "/straightway-pin-XXXXXX";
    const int fd = ::mkstemp(name.data());
    if (fd < 0) GTEST_SKIP() << "no " << GetParam().folder;
    ASSERT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ::close(fd);
    path = other_path = name;
  }
  void TearDown() override {
    if (!other_path.empty()) ::unlink(other_path.c_str());
    PinTest::TearDown();
  }
  // In another process, as most such changes are made.
  void change() {
    ASSERT_EQ(tests::in_child([&] { return GetParam().make(path) ? 0 : 1; }), 0);
  }
  void expect_given_up(const Receipt& receipt, const Pin& pin) {
    if (GetParam().keeps_pin) return;  // whether it is kept is the kernel's business
    EXPECT_EQ(moved(receipt, Route::pinned_cache), 0U);
    EXPECT_FALSE(pin.holds());
    EXPECT_EQ(warnings, 1) << warning;
  }
  std::string other_path;
};

TEST_P(ChangedFile, BetweenReads) {
  const auto file = open();
  auto pin = file.pin();
  ASSERT_TRUE(pin) << pin.error().message();
  EXPECT_EQ(moved(read_right(file), Route::pinned_cache), file_bytes);
  change();
  const auto receipt = read_right(file);
  expect_given_up(receipt, *pin);
  read_right(file);
  EXPECT_LE(warnings, 1);
  pin->release();
  EXPECT_EQ(held_bytes(), 0U);
}

TEST_P(ChangedFile, WhileACopyIsUnderWay) {
  const auto file = open();
  auto pin = file.pin();
  ASSERT_TRUE(pin) << pin.error().message();
  read_right(file);  // opens all that it takes
  wipe();
  fake_.hold_copies(1);
  const auto copies = fake_.calls_of("cuMemcpyHtoDAsync");
  const auto job = file.submit_read(at(device, file_bytes));
  ASSERT_TRUE(job);
  while (fake_.calls_of("cuMemcpyHtoDAsync") == copies) std::this_thread::yield();
  change();
  fake_.hold_copies(0);
  const auto receipt = job->result();
  ASSERT_TRUE(receipt) << receipt.error().message();
  const auto want = bytes_of(file);
  EXPECT_EQ(receipt->moved_bytes, want.size());
  EXPECT_TRUE(device_chars(want.size()) == want);
  expect_given_up(*receipt, *pin);
  if (!GetParam().keeps_pin) {
    EXPECT_EQ(receipt->fallback_code, ESTALE);
    EXPECT_EQ(receipt->refused[index(Route::pinned_cache)], Reason::pin_lost);
    if (!want.empty()) {
      EXPECT_EQ(receipt->routes[index(Route::staged)].reason, Reason::pin_lost);
    }
  }
}

TEST_P(ChangedFile, WhileACopyOfTheCallersThreadIsUnderWay) {
  const auto file = open();
  auto pin = file.pin();
  ASSERT_TRUE(pin) << pin.error().message();
  fake_.hold_copies(1);
  const auto copies = fake_.calls_of("cuMemcpyHtoDAsync");
  std::optional<Result<Receipt>> receipt;
  std::thread reader([&] { receipt = file.read_into(at(device, file_bytes)); });
  while (fake_.calls_of("cuMemcpyHtoDAsync") == copies) std::this_thread::yield();
  change();
  fake_.hold_copies(0);
  reader.join();
  ASSERT_TRUE(*receipt) << receipt->error().message();
  const auto want = bytes_of(file);
  EXPECT_EQ((*receipt)->moved_bytes, want.size());
  EXPECT_TRUE(device_chars(want.size()) == want);
  expect_given_up(**receipt, *pin);
}

TEST_P(ChangedFile, WhileAWriterHasItOpen) {
  const auto file = open();
  const OpenedFd writer(path, O_RDWR);  // so the pin takes the careful way
  auto pin = file.pin();
  ASSERT_TRUE(pin) << pin.error().message();
  EXPECT_EQ(moved(read_right(file), Route::pinned_cache), file_bytes);
  change();
  expect_given_up(read_right(file), *pin);
}

TEST_P(ChangedFile, BeforeThePin) {
  const auto file = open();
  change();
  const auto pin = file.pin();
  ASSERT_TRUE(pin) << pin.error().message();
  const auto receipt = read_right(file);
  EXPECT_EQ(moved(receipt, Route::pinned_cache), receipt.moved_bytes);
  EXPECT_EQ(warnings, 0);
}

constexpr const char* tmpfs = "/dev/shm";
INSTANTIATE_TEST_SUITE_P(
    Kernel, ChangedFile,
    testing::Values(Change{"direct", "", false, write_direct},
                    Change{"buffered", "", true, write_buffered},
                    Change{"mapped", "", true, write_mapped}, Change{"punch", "", false, punch},
                    Change{"zero_range", "", false, zero_range},
                    Change{"collapse", "", false, collapse}, Change{"shrink", "", false, shrink},
                    Change{"shrink_and_grow", "", false, shrink_and_grow},
                    Change{"rewrite", "", false, rewrite}, Change{"empty", "", false, empty},
                    Change{"unlink", "", true, unlink_it}, Change{"replace", "", true, replace},
                    Change{"tmpfs_buffered", tmpfs, true, write_buffered},
                    Change{"tmpfs_mapped", tmpfs, true, write_mapped},
                    Change{"tmpfs_punch", tmpfs, false, punch},
                    Change{"tmpfs_shrink_and_grow", tmpfs, false, shrink_and_grow},
                    Change{"tmpfs_rewrite", tmpfs, false, rewrite},
                    Change{"tmpfs_unlink", tmpfs, true, unlink_it}),
    [](const auto& made) { return std::string(made.param.name); });

}  // namespace
}  // namespace straightway
