#include "api/placed_ranges.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/temp_file.hpp"

namespace straightway {
namespace {

constexpr std::size_t room = 1000;

class PlacedRanges : public testing::Test {
 protected:
  Result<void> check(Direction direction, const std::vector<PlacedRange>& ranges) {
    return check_placed(direction, "a.bin", {memory_.data(), memory_.size()}, ranges);
  }
  std::string why(Direction direction, const std::vector<PlacedRange>& ranges) {
    const auto checked = check(direction, ranges);
    return checked ? "" : checked.error().message();
  }

 private:
  std::vector<char> memory_ = std::vector<char>(room);
};

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(PlacedRanges, TakesWhatLiesWithin) {
  EXPECT_TRUE(check(Direction::read, {}));
  EXPECT_TRUE(check(Direction::read, {{7, 600, 400}, {7, 400, 0}, {0, 0, room}, {0, 0, 100}}));
  EXPECT_TRUE(check(Direction::read, {{INT64_MAX - 10, 10, 0}}));
  EXPECT_TRUE(check_placed(Direction::read, "", {nullptr, 0}, std::vector<PlacedRange>(2)));
}

TEST_F(PlacedRanges, NamesTheFirstThatLiesOutside) {
  for (const auto direction : {Direction::read, Direction::write}) {
    EXPECT_TRUE(mentions(why(direction, {{0, 1, 0}, {5, 1, room}}), "range 1 of"));
    EXPECT_TRUE(mentions(why(direction, {{0, 2, room - 1}}), "2 bytes at position 999"));
    EXPECT_TRUE(mentions(why(direction, {{0, 0, room + 1}}), "memory of 1000 bytes"));
    EXPECT_FALSE(check(direction, {{0, room, UINT64_MAX}}));
    EXPECT_FALSE(check(direction, {{0, 1, UINT64_MAX}}));
    EXPECT_FALSE(check(direction, {{0, UINT64_MAX, 1}}));
    EXPECT_FALSE(check(direction, {{INT64_MAX - 10, 11, 0}}));
    EXPECT_FALSE(check(direction, {{UINT64_MAX, 1, 0}}));
  }
  const std::vector<PlacedRange> one{{0, 1, 8}};
  EXPECT_FALSE(check_placed(Direction::read, "", {nullptr, 100}, one));
}

TEST_F(PlacedRanges, RefusesTwoThatFillTheSameBytes) {
  const std::vector<PlacedRange> same_memory{{0, 10, 20}, {100, 5, 0}, {200, 10, 29}};
  EXPECT_TRUE(mentions(why(Direction::read, same_memory), "range 2 of"));
  EXPECT_TRUE(mentions(why(Direction::read, same_memory), "range 0 fills too"));
  EXPECT_TRUE(check(Direction::write, same_memory));
  const std::vector<PlacedRange> same_file{{100, 10, 20}, {0, 5, 0}, {109, 10, 40}};
  EXPECT_TRUE(mentions(why(Direction::write, same_file), "of the file that range 0 fills too"));
  EXPECT_TRUE(check(Direction::read, same_file));
  // One without bytes fills nothing, and hides nothing.
  EXPECT_TRUE(check(Direction::read, {{0, 100, 0}, {0, 0, 50}, {0, 10, 100}}));
  EXPECT_FALSE(check(Direction::read, {{0, 100, 0}, {0, 0, 0}, {0, 10, 99}}));
  EXPECT_FALSE(check(Direction::read, {{0, 100, 50}, {0, 20, 60}, {0, 20, 0}, {0, 20, 160}}));
}

// Against every pair.
TEST_F(PlacedRanges, AgreesWithASimpleModel) {
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<PlacedRange> ranges(random() % 6);
    for (auto& range : ranges) {
      range = {random() % 100, random() % 4 * (random() % 60), random() % 700};
    }
    bool clash = false;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const auto begin = std::max(ranges[i].position, ranges[j].position);
        const auto end = std::min(ranges[i].position + ranges[i].size_bytes,
                                  ranges[j].position + ranges[j].size_bytes);
        clash |= begin < end;
      }
    }
    refused += clash ? 1 : 0;
    EXPECT_EQ(check(Direction::read, ranges).ok(), !clash) << round;
  }
  EXPECT_GT(refused, 100);
}

class PlacedRangesOfAFile : public testing::Test {
 protected:
  PlacedRangesOfAFile() : bytes(tests::pattern((1 << 20) + 77)), path(folder.write("a", bytes)) {}
  tests::TempFolder folder;
  std::vector<char> bytes;
  std::string path;
};

TEST_F(PlacedRangesOfAFile, MoveInOneCall) {
  const auto file = std::move(File::open(path, "r+")).value();
  std::vector<char> memory(bytes.size(), 0);
  std::vector<PlacedRange> ranges;
  for (std::uint64_t at = 0; at < bytes.size(); at += 5003) {
    const auto size = std::min<std::uint64_t>(5003, bytes.size() - at);
    ranges.push_back({at, size, bytes.size() - at - size});  // the last first
  }
  const auto receipt = file.read_ranges({memory.data(), memory.size()}, ranges);
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_EQ(receipt->moved_bytes, bytes.size());
  ASSERT_TRUE(receipt->ranges);
  ASSERT_EQ(receipt->ranges->offset.size(), ranges.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto from = static_cast<std::ptrdiff_t>(ranges[i].offset);
    const auto to = static_cast<std::ptrdiff_t>(ranges[i].position);
    const auto size = static_cast<std::ptrdiff_t>(ranges[i].size_bytes);
    EXPECT_TRUE(std::equal(bytes.begin() + from, bytes.begin() + from + size, memory.begin() + to));
    EXPECT_EQ(receipt->ranges->offset[i], ranges[i].offset);
    EXPECT_EQ(receipt->ranges->wanted_bytes[i], ranges[i].size_bytes);
    EXPECT_EQ(receipt->ranges->moved_bytes[i], ranges[i].size_bytes);
  }
  // And back, each where it came from.
  const auto written = file.write_ranges({memory.data(), memory.size()}, ranges);
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_EQ(folder.read("a"), bytes);
}

TEST_F(PlacedRangesOfAFile, NothingMovesWhereOneIsWrong) {
  const auto file = std::move(File::open(path, "r+")).value();
  std::vector<char> memory(100, 'x');
  const std::vector<PlacedRange> wrong{{0, 50, 0}, {0, 50, 51}};
  const auto read = file.read_ranges({memory.data(), memory.size()}, wrong);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(read.error().path, path);
  EXPECT_FALSE(file.write_ranges({memory.data(), memory.size()}, wrong));
  EXPECT_FALSE(file.submit_ranges(Direction::read, {memory.data(), memory.size()}, wrong));
  EXPECT_EQ(memory, std::vector<char>(100, 'x'));
  EXPECT_EQ(folder.read("a"), bytes);
}

TEST_F(PlacedRangesOfAFile, AClosedFileIsAnError) {
  auto file = std::move(File::open(path)).value();
  ASSERT_TRUE(file.close());
  char byte = 0;
  const std::vector<PlacedRange> one{{0, 1, 0}};
  EXPECT_EQ(file.read_ranges({&byte, 1}, one).error().kind, ErrorKind::closed);
  EXPECT_EQ(file.read_ranges({&byte, 1}, std::vector<PlacedRange>{}).error().kind,
            ErrorKind::closed);
}

TEST_F(PlacedRangesOfAFile, AJobOwnsWhatItWasGiven) {
  const auto file = std::move(File::open(path)).value();
  auto memory = std::make_shared<std::vector<char>>(200'000, 0);
  const std::weak_ptr<std::vector<char>> watched = memory;
  std::vector<PlacedRange> ranges{{1000, 100'000, 100'000}, {0, 1000, 0}};
  const Memory all{memory->data(), memory->size()};
  auto job = file.submit_ranges(Direction::read, all, ranges, {}, memory);
  ASSERT_TRUE(job) << job.error().message();
  ranges.assign(2, {});  // read already
  EXPECT_EQ(job->result()->moved_bytes, 101'000U);
  EXPECT_TRUE(std::equal(memory->begin(), memory->begin() + 1000, bytes.begin()));
  EXPECT_TRUE(std::equal(memory->begin() + 100'000, memory->end(), bytes.begin() + 1000));
  memory.reset();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace straightway
