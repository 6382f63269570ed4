#include "receipt/tally.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "receipt/run_summary.hpp"
#include "receipt/tally_layout.hpp"
#include "tests/temp_file.hpp"

namespace straightway::receipt {
namespace {

Receipt receipt_of(const std::string& path, std::uint64_t bytes,
                   Reason reason = Reason::host_memory) {
  Receipt receipt;
  receipt.wanted_bytes = receipt.moved_bytes = bytes;
  receipt.routes[index(Route::buffered)] = {bytes, 1, reason, {}};
  auto file = std::make_shared<FileFacts>();
  file->path = path;
  receipt.file = std::move(file);
  return receipt;
}

class TallyTest : public testing::Test {
 protected:
  RunSummary summary() const { return *memory.read(); }
  RunMemory memory = std::move(*RunMemory::create());
  std::unique_ptr<Tally> tally = Tally::open(memory.place());
};

TEST_F(TallyTest, SumsUpByFileDirectionAndMemory) {
  Receipt receipt = receipt_of("/a", 100);
  receipt.file_offset = 50;
  tally->add(receipt);
  tally->add(receipt);
  tally->add(receipt_of("/b", 10));
  receipt.direction = Direction::write;
  tally->add(receipt);
  receipt.memory.space = SpaceKind::cuda;
  receipt.memory.device = 3;
  tally->add(receipt);
  const auto files = summary().files;
  ASSERT_EQ(files.size(), 4U);
  EXPECT_EQ(files[0].path, "/a");
  EXPECT_EQ(files[0].moved_bytes, 200U);
  EXPECT_EQ(files[0].requests, 2U);
  EXPECT_EQ(files[0].end, 150U);
  EXPECT_TRUE(std::ranges::any_of(files, [](const auto& file) {
    return file.direction == Direction::write && file.space == SpaceKind::cuda && file.device == 3;
  }));
}

TEST_F(TallyTest, KeepsRoutesApartByReasonWithTheirSentences) {
  tally->add(receipt_of("/a", 100, Reason::host_memory));
  tally->add(receipt_of("/a", 300, Reason::edge_block));
  Receipt receipt = receipt_of("/a", 1, Reason::host_memory);
  receipt.refused[index(Route::nvfs)] = Reason::nvfs_not_loaded;
  receipt.refused[index(Route::buffered)] = Reason::not_preferred;  // used: no refusal to show
  tally->add(receipt);
  const auto files = summary().files;
  ASSERT_EQ(files.size(), 1U);
  ASSERT_EQ(files[0].ways.size(), 2U);
  EXPECT_EQ(files[0].ways[0].reason, Reason::edge_block);
  EXPECT_EQ(files[0].ways[0].sentence, "an edge shorter than one block of direct I/O");
  EXPECT_EQ(files[0].ways[1].bytes, 101U);
  ASSERT_EQ(files[0].refusals.size(), 1U);
  EXPECT_NE(files[0].refusals[0].sentence.find("nvidia-fs is not loaded"), std::string::npos);
}

TEST_F(TallyTest, MoreReasonsThanPlacesLoseNoBytes) {
  for (std::uint64_t i = 1; i < 20; ++i) {
    tally->add(receipt_of("/a", 10, static_cast<Reason>(i)));
  }
  const auto files = summary().files;
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].moved_bytes, 190U);
}

TEST_F(TallyTest, MoreFilesThanPlacesLoseNoBytes) {
  constexpr std::uint64_t count = tally_file_limit * 2;
  for (std::uint64_t i = 0; i < count; ++i) tally->add(receipt_of("/f" + std::to_string(i), 10));
  const auto files = summary().files;
  std::uint64_t bytes = 0;
  for (const auto& file : files) bytes += file.moved_bytes;
  EXPECT_EQ(bytes, count * 10);
  EXPECT_EQ(std::ranges::count_if(files, [](const auto& file) { return file.is_rest; }), 1);
}

TEST_F(TallyTest, ThreadsAndForkedChildrenCountTogether) {
  const auto count = [&] {
    for (int i = 0; i < 1000; ++i) tally->add(receipt_of("/f" + std::to_string(i % 10), 1));
  };
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) threads.emplace_back(count);
  for (auto& thread : threads) thread.join();
  const pid_t child = ::fork();
  if (child == 0) {
    count();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  tally->add_error(Direction::write);
  const auto found = summary();
  ASSERT_EQ(found.files.size(), 10U);
  for (const auto& file : found.files) EXPECT_EQ(file.moved_bytes, 500U) << file.path;
  EXPECT_EQ(found.write_errors, 1U);
  ASSERT_EQ(found.processes.size(), 1U);
  EXPECT_EQ(found.processes[0].pid, ::getpid());
}

TEST_F(TallyTest, ALongPathKeepsItsEnd) {
  tally->add(receipt_of("/" + std::string(2000, 'x') + "/end", 1));
  const auto files = summary().files;
  ASSERT_EQ(files.size(), 1U);
  EXPECT_TRUE(files[0].path.ends_with("xxx/end"));
}

TEST(TallyPlaceTest, NothingElseIsTakenForATally) {
  const tests::TempFolder folder;
  const std::string file = folder.write("file", std::vector<char>(sizeof(TallyLayout)));
  for (const std::string& place : {std::string("/no/such"), std::string("/dev/null"), file}) {
    EXPECT_EQ(Tally::open(place), nullptr) << place;
  }
  const int fd = ::memfd_create(tally_name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(fd, sizeof(TallyLayout)), 0);
  const std::string place = "/proc/self/fd/" + std::to_string(fd);
  EXPECT_EQ(Tally::open(place), nullptr) << "it may shrink";
  ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  EXPECT_EQ(Tally::open(place), nullptr) << "it begins with zeros";
  ::close(fd);
}

}  // namespace
}  // namespace straightway::receipt
