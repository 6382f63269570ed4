#include "receipt/run_summary.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "receipt/tally_layout.hpp"

namespace straightway::receipt {
namespace {

class RunSummaryTest : public testing::Test {
 protected:
  RunSummaryTest() : fd(::open(memory.place().c_str(), O_RDWR | O_CLOEXEC)) {}
  ~RunSummaryTest() override { ::close(fd); }
  void write(const void* from, std::size_t size, std::size_t offset) const {
    ASSERT_EQ(::pwrite(fd, from, size, static_cast<off_t>(offset)), static_cast<ssize_t>(size));
  }
  void write_file(const TallyFile& file) const {
    write(&file, sizeof(file), offsetof(TallyLayout, files) + 5 * sizeof(TallyFile));
  }
  RunMemory memory = std::move(*RunMemory::create());
  int fd;
};

TEST_F(RunSummaryTest, FreshMemoryIsEmpty) {
  const auto summary = memory.read();
  ASSERT_TRUE(summary);
  EXPECT_TRUE(summary->files.empty());
  EXPECT_TRUE(summary->processes.empty());
}

TEST_F(RunSummaryTest, NobodyChangesItsSize) {
  EXPECT_NE(::ftruncate(fd, 0), 0);
  EXPECT_NE(::ftruncate(fd, sizeof(TallyLayout) * 2), 0);
  EXPECT_NE(::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST_F(RunSummaryTest, AFileWhoseWriterWasKilledHasNoNameAndKeepsItsBytes) {
  auto file = std::make_unique<TallyFile>();
  file->key = 1;
  file->requests = 1;
  file->ways[0] = {way_tag(Route::staged, Reason::device_memory), 7, 1, {}};
  file->path = {'h', 'a', 'l', 'f'};
  write_file(*file);
  const auto summary = memory.read();
  ASSERT_EQ(summary->files.size(), 1U);
  EXPECT_EQ(summary->files[0].path, "");
  EXPECT_EQ(summary->files[0].moved_bytes, 7U);
  EXPECT_EQ(summary->files[0].ways[0].sentence, "device-memory");
}

TEST_F(RunSummaryTest, NothingInItSteersATerminal) {
  auto file = std::make_unique<TallyFile>();
  file->key = file->requests = file->written = 1;
  file->path = {'a', '\033', '[', '2', 'J', '\n', 'b'};
  file->ways[0].tag = way_tag(Route::buffered, Reason::host_memory);
  file->ways[0].sentence.written = 1;
  file->ways[0].sentence.text.fill('\033');  // without an end
  write_file(*file);
  const auto summary = memory.read();
  EXPECT_EQ(summary->files[0].path, "a?[2J?b");
  EXPECT_EQ(summary->files[0].ways[0].sentence, std::string(208, '?'));
}

TEST_F(RunSummaryTest, SumsDoNotOverflow) {
  auto file = std::make_unique<TallyFile>();
  file->key = file->requests = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    file->ways[i] = {way_tag(all_routes[i], Reason::none), UINT64_MAX, 1, {}};
  }
  write_file(*file);
  EXPECT_EQ(memory.read()->files[0].moved_bytes, UINT64_MAX);
}

// Whatever stands there is read as something, by a reader that asan and ubsan watch.
TEST_F(RunSummaryTest, AnyBytesAreRead) {
  std::mt19937_64 random(20261130);
  std::vector<std::uint64_t> words((sizeof(TallyLayout) - 24) / 8);
  for (int round = 0; round < 3; ++round) {
    for (auto& word : words) {
      word = round == 0 ? UINT64_MAX : round == 1 ? random() : random() % 300;
    }
    write(words.data(), words.size() * 8, 24);
    const auto summary = memory.read();
    ASSERT_TRUE(summary);
    for (const auto& file : summary->files) {
      EXPECT_LE(file.ways.size(), tally_way_limit);
      for (const auto& way : file.ways) EXPECT_NE(to_string(way.reason), nullptr);
    }
  }
}

}  // namespace
}  // namespace straightway::receipt
