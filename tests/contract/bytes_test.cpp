// The right bytes, at the right place, and nothing beside it, whatever the alignment.

#include <algorithm>
#include <array>
#include <random>

#include "tests/contract/transport_contract.hpp"

namespace straightway::contract {
namespace {

using transport::Segment;

constexpr std::array<std::uint64_t, 8> offsets = {0, 1, 511, 512, 4095, 4096, 4097, 12288 + 17};
constexpr std::array<std::uint64_t, 7> sizes = {1, 511, 512, 4096, 4097, 65536, 100'001};
constexpr std::array<std::uint64_t, 5> memory_offsets = {0, 1, 63, 512, 4096};

using Bytes = std::vector<std::byte>;

void copy(const Bytes& from, std::uint64_t at, std::uint64_t size, Bytes& to, std::uint64_t where) {
  std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(at), size,
              to.begin() + static_cast<std::ptrdiff_t>(where));
}

TEST_P(TransportContract, A1_A18_ReadsLandExactlyWhereAsked) {
  if (!GetParam().moves_bytes) return;
  make_file(1 << 18);
  make_memory(1 << 18);
  for (const auto offset : offsets) {
    for (const auto size : sizes) {
      for (const auto at : memory_offsets) {
        for (const bool direct : {false, true}) {
          if (direct && !direct_fits(offset, size, at, Direction::read)) continue;
          memory_->write(before_);
          auto expected = before_;
          copy(bytes_, offset, size, expected, at);
          const auto one = segment(Direction::read, offset, size, at, direct);
          ASSERT_EQ(run_one(one), static_cast<std::int64_t>(size))
              << offset << "+" << size << (direct ? " direct" : "");
          ASSERT_TRUE(same_bytes(memory_->read(), expected))
              << offset << "+" << size << " to " << at << (direct ? " direct" : "");
        }
      }
    }
  }
}

TEST_P(TransportContract, A1_A18_WritesLandExactlyWhereAsked) {
  if (!GetParam().moves_bytes || !capabilities().writes) return;
  make_file(1 << 18);
  make_memory(1 << 18);
  auto expected = bytes_;
  for (const auto offset : offsets) {
    for (const auto size : sizes) {
      for (const auto at : memory_offsets) {
        const bool direct = direct_fits(offset, size, at, Direction::write);
        copy(before_, at, size, expected, offset);
        const auto one = segment(Direction::write, offset, size, at, direct);
        ASSERT_EQ(run_one(one), static_cast<std::int64_t>(size))
            << offset << "+" << size << (direct ? " direct" : "");
      }
      ASSERT_TRUE(same_bytes(file_->contents(), expected)) << offset << "+" << size;
    }
  }
  EXPECT_TRUE(same_bytes(memory_->read(), before_));
}

// A1: four distinct pages, read and written across a page's end.
TEST_P(TransportContract, A1_TailAcrossAPage) {
  if (!GetParam().moves_bytes) return;
  make_file(4 * 4096);
  make_memory(4 * 4096);
  ASSERT_EQ(run_one(segment(Direction::read, 4096, 4096 + 100, 0)), 4096 + 100);
  auto expected = before_;
  copy(bytes_, 4096, 4096 + 100, expected, 0);
  EXPECT_TRUE(same_bytes(memory_->read(), expected));
  if (!capabilities().writes) return;
  ASSERT_EQ(run_one(segment(Direction::write, 8192, 4096 + 100, 4096)), 4096 + 100);
  auto file = bytes_;
  copy(expected, 4096, 4096 + 100, file, 8192);
  EXPECT_TRUE(same_bytes(file_->contents(), file));
}

// Short at the end of the file, and 0 past it; nothing outside the payload changes.
TEST_P(TransportContract, EndOfFileIsShortThenZero) {
  if (!GetParam().moves_bytes || !GetParam().whole_file) return;
  constexpr std::uint64_t end = 3 * 4096 + 77;
  make_file(end);
  make_memory(65536);
  for (const bool direct : {false, true}) {
    for (const std::uint64_t from : {std::uint64_t{0}, std::uint64_t{8192}, end - 1, end, end + 1,
                                     std::uint64_t{16384}, std::uint64_t{1} << 40}) {
      if (direct && !direct_fits(from, 16384, 0, Direction::read)) continue;
      memory_->write(before_);
      const auto has = from < end ? end - from : 0;
      ASSERT_EQ(run_one(segment(Direction::read, from, 16384, 0, direct)),
                static_cast<std::int64_t>(std::min<std::uint64_t>(has, 16384)))
          << from << (direct ? " direct" : "");
      auto expected = before_;
      copy(bytes_, std::min(from, end), std::min<std::uint64_t>(has, 16384), expected, 0);
      auto after = memory_->read();
      if (direct) {  // the kernel fills the last block with zeros: the payload's, nobody else's
        const auto moved = std::min<std::uint64_t>(has, 16384);
        copy(expected, moved, 16384 - moved, after, moved);
      }
      ASSERT_TRUE(same_bytes(after, expected)) << from << (direct ? " direct" : "");
    }
  }
}

// Thousands, in any order, to scattered places: memory gets each piece where it belongs.
TEST_P(TransportContract, ManyInFlightInAnyOrder) {
  if (!GetParam().moves_bytes) return;
  constexpr std::uint64_t piece = 4096;
  constexpr std::uint64_t count = 1500;
  make_file(piece * count);
  make_memory(piece * count);
  std::vector<std::uint64_t> order(count);
  for (std::uint64_t i = 0; i < count; ++i) order[i] = i;
  std::mt19937 random(5);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<Segment> segments;
  Bytes expected(before_.size());
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool direct = i % 3 == 0 && direct_fits(0, piece, 0, Direction::read);
    segments.push_back(segment(Direction::read, order[i] * piece, piece, i * piece, direct));
    copy(bytes_, order[i] * piece, piece, expected, i * piece);
  }
  for (const auto& [cookie, completion] : run(segments)) ASSERT_EQ(completion.result, 4096);
  EXPECT_TRUE(same_bytes(memory_->read(), expected));
}

// Neighbours in file and memory: adaptors may join them, and must still tell them apart.
TEST_P(TransportContract, LargeNeighbouringSegments) {
  if (!GetParam().moves_bytes) return;
  const auto piece = std::min<std::uint64_t>(capabilities().largest_segment_bytes, 1 << 20);
  const auto total = 20 * piece + 12'345;
  make_file(total);
  make_memory(total);
  for (const bool direct : {false, true}) {
    if (direct && !(capabilities().takes_envelopes && file_->has_direct())) continue;
    memory_->write(before_);
    std::vector<Segment> segments;
    for (std::uint64_t at = 0; at < total; at += piece) {
      const auto size = std::min(piece, total - at);
      segments.push_back(segment(Direction::read, at, size, at, direct));
    }
    const auto completions = run(segments);
    for (const auto& one : segments)
      ASSERT_EQ(completions.at(one.cookie).result, static_cast<std::int64_t>(one.size_bytes));
    EXPECT_TRUE(same_bytes(memory_->read(), bytes_));
  }
}

TEST_P(TransportContract, LargeNeighbouringWrites) {
  if (!GetParam().moves_bytes || !capabilities().writes) return;
  const auto piece = std::min<std::uint64_t>(capabilities().largest_segment_bytes, 1 << 20);
  const auto total = 12 * piece + 12'345;
  make_file(1);
  make_memory(total);
  std::vector<Segment> segments;
  for (std::uint64_t at = 0; at < total; at += piece)
    segments.push_back(segment(Direction::write, at, std::min(piece, total - at), at));
  const auto completions = run(segments);
  for (const auto& one : segments)
    ASSERT_EQ(completions.at(one.cookie).result, static_cast<std::int64_t>(one.size_bytes));
  EXPECT_TRUE(same_bytes(file_->contents(), before_));
}

// Both directions at once, on ranges that do not overlap.
TEST_P(TransportContract, ReadsAndWritesTogether) {
  if (!GetParam().moves_bytes || !capabilities().writes) return;
  constexpr std::uint64_t piece = 5000;
  constexpr std::uint64_t count = 200;
  make_file(piece * count);
  make_memory(piece * count);
  auto file = bytes_;
  auto memory = before_;
  std::vector<Segment> segments;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto at = i * piece;
    const auto direction = i % 2 == 0 ? Direction::read : Direction::write;
    segments.push_back(segment(direction, at, piece, at));
    if (direction == Direction::read) {  // an envelope reads beside it, where a write may be
      segments.back().envelope_offset = at;
      segments.back().envelope_bytes = piece;
      copy(bytes_, at, piece, memory, at);
    } else {
      copy(before_, at, piece, file, at);
    }
  }
  for (const auto& [cookie, completion] : run(segments)) ASSERT_EQ(completion.result, 5000);
  EXPECT_TRUE(same_bytes(memory_->read(), memory));
  EXPECT_TRUE(same_bytes(file_->contents(), file));
}

}  // namespace
}  // namespace straightway::contract
