// Cold, mixed and hot files on the real kernel, by what the page cache has before and after.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <span>
#include <thread>

#include "os/facts.hpp"
#include "straightway/context.hpp"
#include "straightway/file.hpp"
#include "tests/temp_file.hpp"

namespace straightway {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr std::uint64_t file_mib = 48;

class ColdFile : public testing::Test {
 protected:
  void SetUp() override {
    bytes_ = tests::pattern(file_mib * mib);
    path_ = folder_.write("file", bytes_);
    fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd_, 0);
    ASSERT_EQ(::fdatasync(fd_), 0);
    const auto facts = os::read_file_facts(fd_, path_);
    if (facts.filesystem != "ext4" && facts.filesystem != "xfs") {
      GTEST_SKIP() << facts.filesystem << " may keep its pages, or not tell";
    }
    make_cold({0, file_mib * mib});
    if (resident({0, file_mib * mib}) != 0) GTEST_SKIP() << "its pages cannot be dropped here";
    auto made = Context::create({});
    ASSERT_TRUE(made.ok());
    context_ = *made;
  }
  void TearDown() override { ::close(fd_); }

  void make_cold(FileRange range) const {
    ::posix_fadvise(fd_, static_cast<off_t>(range.offset), static_cast<off_t>(range.size_bytes),
                    POSIX_FADV_DONTNEED);
  }
  void make_hot(FileRange range) const {
    // Without readahead beyond it: this descriptor is ours.
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_RANDOM);
    std::vector<char> into(range.size_bytes);
    ASSERT_EQ(::pread(fd_, into.data(), into.size(), static_cast<off_t>(range.offset)),
              static_cast<ssize_t>(into.size()));
  }
  std::uint64_t resident(FileRange range) const {
    const auto found = os::read_residency(fd_, range.offset, range.size_bytes);
    EXPECT_TRUE(found.known) << found.why_unknown;
    return found.resident_bytes;
  }
  // Other programs may drop or need the page cache at any time; never in five tries each.
  static bool unless_disturbed(const std::function<bool()>& holds) {
    for (int tries = 0; tries < 5; ++tries) {
      if (holds()) return true;
    }
    return false;
  }
  // The whole file, with its bytes checked.
  Receipt read(Cache cache) {
    auto file = File::open(path_, "r", {}, context_);
    EXPECT_TRUE(file.ok());
    // As aligned as O_DIRECT asks.
    std::vector<char> into(file_mib * mib + 4096);
    char* start =
        into.data() + (4096 - reinterpret_cast<std::uintptr_t>(into.data()) % 4096) % 4096;
    CallOptions options;
    options.cache = cache;
    auto receipt = file->read_into({start, file_mib * mib}, options);
    EXPECT_TRUE(receipt.ok()) << receipt.error().message();
    EXPECT_TRUE(std::equal(bytes_.begin(), bytes_.end(), start));
    return *receipt;
  }

  tests::TempFolder folder_;
  std::vector<char> bytes_;
  std::string path_;
  std::string note_;
  int fd_ = -1;
  std::shared_ptr<Context> context_;
};

TEST_F(ColdFile, AutoReadsAheadAndTheNextReadIsHot) {
  EXPECT_TRUE(unless_disturbed([&] {
    make_cold({0, file_mib * mib});
    const auto cold = read(Cache::automatic);
    const auto hot = read(Cache::automatic);
    note_ = cold.to_text() + hot.to_text();
    EXPECT_EQ(cold.cold_reason, Reason::cold_kept);
    return cold.found == CacheFound{0, file_mib * mib, 0} &&
           hot.found == CacheFound{file_mib * mib, 0, 0} &&
           (!cold.disk_measured || cold.disk_bytes >= file_mib * mib) &&
           (!hot.disk_measured || hot.disk_bytes == 0);
  })) << note_;
}

// Hot pages are never read again; what the kernel rounds up is little.
TEST_F(ColdFile, AMixedFileReadsItsColdPartFromTheDiskAndNoMore) {
  EXPECT_TRUE(unless_disturbed([&] {
    make_cold({0, file_mib * mib});
    for (std::uint64_t at = 0; at < file_mib; at += 8) make_hot({at * mib, 4 * mib});
    const auto receipt = read(Cache::keep);
    note_ = receipt.to_text();
    const auto half = file_mib / 2 * mib;
    return receipt.found == CacheFound{half, half, 0} && receipt.disk_measured &&
           receipt.disk_bytes >= half && receipt.disk_bytes <= half + 4 * mib;
  })) << note_;
}

TEST_F(ColdFile, DropLeavesNothingOfAColdFile) {
  const auto receipt = read(Cache::drop);
  EXPECT_EQ(receipt.found.cold_bytes, file_mib * mib);
  EXPECT_LE(resident({0, file_mib * mib}), file_mib * mib / 100);
}

TEST_F(ColdFile, DropLeavesWhatWasHotBefore) {
  EXPECT_TRUE(unless_disturbed([&] {
    make_cold({0, file_mib * mib});
    make_hot({8 * mib, 16 * mib});
    const auto receipt = read(Cache::drop);
    note_ = receipt.to_text();
    EXPECT_LE(resident({24 * mib, 24 * mib}), mib);
    return receipt.found.hot_bytes == 16 * mib && resident({8 * mib, 16 * mib}) == 16 * mib;
  })) << note_;
}

// Bypass goes to the disk even for hot bytes, and sees what others wrote but nobody wrote back.
TEST_F(ColdFile, NoWayMissesDirtyPages) {
  for (const auto cache : {Cache::bypass, Cache::drop, Cache::keep, Cache::automatic}) {
    for (std::uint64_t at = 0; at < file_mib; at += 3) {
      for (auto& byte : std::span(bytes_).subspan(at * mib + 5000, 9000)) byte ^= 0x5a;
      ASSERT_EQ(
          ::pwrite(fd_, bytes_.data() + at * mib + 5000, 9000, static_cast<off_t>(at * mib + 5000)),
          9000);
    }
    read(cache);  // checks the bytes
    ASSERT_EQ(::fdatasync(fd_), 0);
    make_cold({0, file_mib * mib});
  }
}

TEST_F(ColdFile, BypassLeavesNothingAndSaysSo) {
  const auto receipt = read(Cache::bypass);
  EXPECT_EQ(receipt.routes[index(Route::direct_host)].bytes, file_mib * mib);
  EXPECT_LE(resident({0, file_mib * mib}), file_mib * mib / 100);
  EXPECT_FALSE(receipt.found.looked());
}

TEST_F(ColdFile, ExplainLooksAtTheStartAndMovesNothing) {
  auto file = File::open(path_, "r", {}, context_);
  ASSERT_TRUE(file.ok());
  const auto plan = file->explain(Direction::read, SpaceKind::host, -1, file_mib * mib);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->first_window, (CacheFound{0, file_mib * mib, 0}));
  EXPECT_NE(plan->to_text().find("decided per MiB by what is in it"), std::string::npos);
  EXPECT_EQ(resident({0, file_mib * mib}), 0U);
}

// Others drop and warm its pages all the time: the looks are stale at once, the bytes are right.
TEST_F(ColdFile, BytesAreRightWhileOthersChangeWhatIsCached) {
  for (const auto cache : {Cache::keep, Cache::drop, Cache::automatic}) {
    std::atomic<bool> stop{false};
    std::thread other([&] {
      for (std::uint64_t i = 0; !stop.load(); i += 7) {
        make_cold({i % file_mib * mib, 2 * mib});
        char byte = 0;
        if (::pread(fd_, &byte, 1, static_cast<off_t>((i + 20) % file_mib * mib)) != 1) return;
      }
    });
    for (int i = 0; i < 5; ++i) read(cache);
    stop.store(true);
    other.join();
  }
}

}  // namespace
}  // namespace straightway
