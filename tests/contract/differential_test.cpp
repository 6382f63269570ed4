// Every way that the front door can go reads the same ranges: equal bytes, and receipts that agree
// with themselves and with what was asked.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "straightway/straightway.hpp"
#include "tests/contract/memories.hpp"
#include "tests/contract/test_file.hpp"
#include "tests/contract/transport_contract.hpp"

namespace straightway::contract {
namespace {

constexpr std::uint64_t file_bytes = (std::uint64_t{3} << 20) + 4321;

struct Way {
  Policy policy;
  Cache cache;
  bool submitted;
};

std::vector<Way> every_way() {
  std::vector<Way> ways;
  for (const auto policy : {Policy::automatic, Policy::direct, Policy::staged}) {
    for (const auto cache : {Cache::automatic, Cache::keep, Cache::drop, Cache::bypass}) {
      for (const bool submitted : {false, true}) ways.push_back({policy, cache, submitted});
    }
  }
  return ways;
}

std::string name_of(const Way& way) {
  return std::string(to_string(way.policy)) + ", " + to_string(way.cache) +
         (way.submitted ? ", submitted" : ", blocking");
}

std::unique_ptr<TestMemory> memory_of(std::size_t size_bytes) {
  std::string why;
  auto memory =
      chosen_space() == "cuda" ? make_cuda_memory(size_bytes, &why) : make_host_memory(size_bytes);
  EXPECT_NE(memory, nullptr) << why;
  return memory;
}

Memory at(const TestMemory& memory, std::uint64_t offset, std::uint64_t size_bytes) {
  return {reinterpret_cast<void*>(memory.range().address + offset), size_bytes};
}

Result<Receipt> transfer(const File& file, Direction direction, Memory memory,
                         const CallOptions& options, bool submitted) {
  if (!submitted) {
    return direction == Direction::read ? file.read_into(memory, options)
                                        : file.write_from(memory, options);
  }
  auto job = direction == Direction::read ? file.submit_read(memory, options)
                                          : file.submit_write(memory, options);
  if (!job) return job.error();
  return job->result();
}

// A receipt agrees with itself.
void check_receipt(const Receipt& receipt, std::uint64_t wanted, std::uint64_t moved) {
  EXPECT_EQ(receipt.wanted_bytes, wanted);
  EXPECT_EQ(receipt.moved_bytes, moved);
  EXPECT_EQ(receipt.ended_early, moved < wanted);
  std::uint64_t sum = 0;
  for (const auto route : all_routes) {
    const auto& share = receipt.routes[index(route)];
    sum += share.bytes;
    EXPECT_EQ(share.bytes > 0, share.segments > 0) << to_string(route);
    EXPECT_EQ(share.bytes > 0, share.reason != Reason::none) << to_string(route);
    EXPECT_EQ(share.bytes > 0, share.evidence.kind != EvidenceKind::none) << to_string(route);
    if (share.bytes == 0 && moved > 0) {
      EXPECT_NE(receipt.refused[index(route)], Reason::none) << to_string(route);
    }
  }
  EXPECT_EQ(sum, moved);
  EXPECT_LE(receipt.times.queued_ns, receipt.times.done_ns);
  if (moved > 0) {  // else it never started
    EXPECT_LE(receipt.times.queued_ns, receipt.times.started_ns);
    EXPECT_LE(receipt.times.started_ns, receipt.times.first_byte_ns);
    EXPECT_LE(receipt.times.first_byte_ns, receipt.times.done_ns);
  }
  EXPECT_FALSE(receipt.to_text().empty());
  ASSERT_NE(receipt.settings, nullptr);
  ASSERT_NE(receipt.file, nullptr);
}

// Under the policy direct no byte but an edge may go another way.
void check_policy(const Receipt& receipt, const Way& way) {
  if (way.policy != Policy::direct) return;
  for (const auto route : {Route::staged, Route::buffered}) {
    const auto& share = receipt.routes[index(route)];
    if (share.bytes > 0) {
      EXPECT_EQ(share.reason, Reason::edge_block) << to_string(route);
    }
  }
}

struct Range {
  std::uint64_t offset;
  std::uint64_t size;
  std::uint64_t memory_offset;
};

TEST(Differential, EveryWayReadsTheSameBytes) {
  const auto bytes = random_bytes(file_bytes, 21);
  const TestFile file(bytes);
  const auto before = random_bytes(file_bytes + 8192, 22);
  const auto memory = memory_of(before.size());
  ASSERT_NE(memory, nullptr);
  const std::vector<Range> ranges = {{0, file_bytes, 0},        {0, 2 << 20, 0},
                                     {4096, 1 << 20, 4096},     {1, 3, 5},
                                     {4095, 8194, 1},           {(1 << 20) - 7, (1 << 20) + 13, 0},
                                     {file_bytes - 1, 1, 0},    {file_bytes - 5000, 9000, 512},
                                     {file_bytes + 10, 4096, 0}};
  std::size_t served = 0;
  for (const auto& way : every_way()) {
    OpenOptions open;
    open.policy = way.policy;
    open.cache = way.cache;
    auto opened = File::open(file.path(), "r", open);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    for (const auto& range : ranges) {
      SCOPED_TRACE(name_of(way) + ": " + std::to_string(range.offset) + "+" +
                   std::to_string(range.size));
      auto expected = before;
      memory->write(before);
      CallOptions options;
      options.offset = range.offset;
      const auto target = at(*memory, range.memory_offset, range.size);
      const auto receipt = transfer(*opened, Direction::read, target, options, way.submitted);
      if (!receipt) {
        EXPECT_EQ(receipt.error().kind, ErrorKind::route_refused) << receipt.error().message();
        EXPECT_EQ(way.policy, Policy::direct);
        EXPECT_TRUE(same_bytes(memory->read(), expected)) << "a refusal moves nothing";
        continue;
      }
      ++served;
      const auto has = range.offset < file_bytes ? file_bytes - range.offset : 0;
      const auto moved = std::min(has, range.size);
      check_receipt(*receipt, range.size, moved);
      check_policy(*receipt, way);
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(std::min(range.offset, file_bytes)),
                  moved, expected.begin() + static_cast<std::ptrdiff_t>(range.memory_offset));
      EXPECT_TRUE(same_bytes(memory->read(), expected)) << "other bytes";
    }
  }
  EXPECT_GE(served, ranges.size() * 16);  // all but direct always serve
}

TEST(Differential, EveryWayWritesTheSameBytes) {
  const auto bytes = random_bytes(file_bytes, 31);
  const std::vector<Range> ranges = {{0, 2 << 20, 0},
                                     {4095, 8194, 1},
                                     {1, 3, 5},
                                     {(1 << 20) - 7, (1 << 20) + 13, 0},
                                     {file_bytes - 100, 300, 64}};
  const auto source = random_bytes(file_bytes, 32);
  const auto memory = memory_of(file_bytes);
  ASSERT_NE(memory, nullptr);
  memory->write(source);
  for (const auto& way : every_way()) {
    const TestFile file(bytes);
    OpenOptions open;
    open.policy = way.policy;
    open.cache = way.cache;
    auto opened = File::open(file.path(), "r+", open);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    auto expected = bytes;
    for (const auto& range : ranges) {
      SCOPED_TRACE(name_of(way) + ": " + std::to_string(range.offset) + "+" +
                   std::to_string(range.size));
      CallOptions options;
      options.offset = range.offset;
      const auto from = at(*memory, range.memory_offset, range.size);
      const auto receipt = transfer(*opened, Direction::write, from, options, way.submitted);
      if (!receipt) {
        EXPECT_EQ(receipt.error().kind, ErrorKind::route_refused) << receipt.error().message();
        EXPECT_EQ(way.policy, Policy::direct);
      } else {
        check_receipt(*receipt, range.size, range.size);
        check_policy(*receipt, way);
        expected.resize(std::max(expected.size(), range.offset + range.size));
        std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(range.memory_offset), range.size,
                    expected.begin() + static_cast<std::ptrdiff_t>(range.offset));
      }
      ASSERT_TRUE(same_bytes(file.contents(), expected)) << "other bytes";
    }
  }
  EXPECT_TRUE(same_bytes(memory->read(), source));
}

// Many ranges in one call are those of many calls.
TEST(Differential, ManyRangesAreTheSameAsOneByOne) {
  const auto bytes = random_bytes(file_bytes, 41);
  const TestFile file(bytes);
  auto opened = File::open(file.path());
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  const auto memory = memory_of(file_bytes);
  ASSERT_NE(memory, nullptr);
  auto expected = random_bytes(file_bytes, 42);
  memory->write(expected);
  std::vector<RangeRequest> ranges;
  std::uint64_t to = 0;
  std::uint64_t moved = 0;
  std::uint64_t wanted = 0;
  std::mt19937 random(43);
  for (int i = 0; i < 400; ++i) {
    const std::uint64_t size = random() % 12'000;
    const std::uint64_t offset = random() % (file_bytes + 100);
    if (to + size > file_bytes) break;
    ranges.push_back({offset, size, at(*memory, to, size)});
    const auto has = std::min(size, offset < file_bytes ? file_bytes - offset : 0);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(std::min(offset, file_bytes)), has,
                expected.begin() + static_cast<std::ptrdiff_t>(to));
    to += size;
    moved += has;
    wanted += size;
  }
  const auto receipt = opened->read_ranges(ranges);
  ASSERT_TRUE(receipt.ok()) << receipt.error().message();
  check_receipt(*receipt, wanted, moved);
  EXPECT_TRUE(same_bytes(memory->read(), expected)) << "other bytes";
  ASSERT_NE(receipt->ranges, nullptr);
  const auto& table = *receipt->ranges;
  ASSERT_EQ(table.moved_bytes.size(), ranges.size());
  EXPECT_EQ(std::accumulate(table.moved_bytes.begin(), table.moved_bytes.end(), std::uint64_t{0}),
            moved);
}

}  // namespace
}  // namespace straightway::contract
