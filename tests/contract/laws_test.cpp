// The laws of src/transport/transport.hpp that do not depend on which bytes move.

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <random>
#include <thread>

#include "tests/contract/transport_contract.hpp"

namespace straightway::contract {
namespace {

using transport::Completion;
using transport::Segment;

TEST_P(TransportContract, CapabilitiesMakeSense) {
  EXPECT_STRNE(capabilities().name, "");
  EXPECT_GT(capabilities().depth, 0U);
  EXPECT_GE(capabilities().largest_segment_bytes, align_bytes);
  EXPECT_TRUE(capabilities().reads || capabilities().writes);
}

TEST_P(TransportContract, EachAcceptedSegmentCompletesOnce) {
  constexpr std::uint64_t count = 700;
  constexpr std::uint64_t largest = 3000;
  make_file(1 << 20);
  make_memory(count * largest);  // what is in flight together shares no memory
  std::mt19937 random(3);
  std::vector<Segment> segments;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto size = 1 + random() % largest;
    const auto at = random() % ((1 << 20) - size);
    segments.push_back(segment(Direction::read, at, size, i * largest));
  }
  const auto completions = run(segments);
  for (const auto& one : segments) {
    ASSERT_EQ(completions.count(one.cookie), 1U);
    EXPECT_EQ(completions.at(one.cookie).result, static_cast<std::int64_t>(one.size_bytes));
  }
}

TEST_P(TransportContract, OneAtATimeWorksToo) {
  make_file(65536);
  make_memory(65536);
  std::vector<Segment> segments;
  for (std::uint64_t at = 0; at < 65536; at += 1024)
    segments.push_back(segment(Direction::read, at, 1024, at));
  const auto completions = run(segments, {.offered = 1, .reaped = 1});
  EXPECT_EQ(completions.size(), segments.size());
}

// More is offered than fits: a prefix is taken, never more than the depth, and room comes back with
// the completions only.
TEST_P(TransportContract, TakesAPrefixUpToItsDepth) {
  const std::size_t depth = capabilities().depth;
  make_file(65536);
  make_memory((depth + 5) * 4096);
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < depth + 5; ++i)
    segments.push_back(segment(Direction::read, i % 16 * 4096, 4096, i * 4096));
  std::size_t taken = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    taken += transport().submit(std::span(segments).subspan(taken));
    ASSERT_LE(taken, depth);
  }
  EXPECT_GT(taken, 0U);
  EXPECT_EQ(transport().submit({}), 0U);
  std::vector<std::uint64_t> cookies;
  std::array<Completion, 7> completions;
  while (cookies.size() < taken) {
    const auto count = transport().reap(completions);
    for (std::size_t i = 0; i < count; ++i) cookies.push_back(completions[i].cookie);
    if (count == 0) rig_.wake->wait(1'000'000);
  }
  std::vector<std::uint64_t> expected;
  for (std::size_t i = 0; i < taken; ++i) expected.push_back(segments[i].cookie);
  std::sort(cookies.begin(), cookies.end());
  EXPECT_EQ(cookies, expected);
  EXPECT_GT(transport().submit(std::span(segments).subspan(taken)), 0U) << "room must come back";
}

TEST_P(TransportContract, ReapOfNothingIsNothing) {
  std::array<Completion, 4> completions;
  EXPECT_EQ(transport().reap(completions), 0U);
  make_file(4096);
  make_memory(4096);
  const auto one = segment(Direction::read, 0, 4096, 0);
  ASSERT_EQ(transport().submit({&one, 1}), 1U);
  EXPECT_EQ(transport().reap({}), 0U);  // and loses nothing
  std::size_t count = 0;
  while ((count = transport().reap(completions)) == 0) rig_.wake->wait(1'000'000);
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(completions[0].cookie, one.cookie);
}

// Once it is gone, nobody writes into the memory any more: the test unmaps it and closes the file
// at once, and what was in flight ended completely.
TEST_P(TransportContract, DestructorReturnsWhenNothingIsInFlight) {
  make_file(4 << 20);
  make_memory(4 << 20);
  std::vector<Segment> segments;
  for (std::uint64_t at = 0; at < 4 << 20; at += 65536)
    segments.push_back(segment(Direction::read, at, 65536, at));
  const auto taken = transport().submit(segments);
  EXPECT_GT(taken, 0U);
  rig_.transport.reset();
  const auto settled = memory_->read();
  file_.reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(same_bytes(memory_->read(), settled)) << "somebody still writes";
  if (!GetParam().moves_bytes) return;
  const auto after = static_cast<std::ptrdiff_t>(taken) * 65536;
  EXPECT_TRUE(std::equal(settled.begin() + after, settled.end(), before_.begin() + after));
}

TEST_P(TransportContract, AttachmentsMayOutliveTheTransport) {
  make_file(4096);
  make_memory(4096);
  auto memory_attachment = transport().attach(memory_->range());
  ASSERT_TRUE(memory_attachment.ok());
  auto file_attachment = transport().attach(file_->ref());
  ASSERT_TRUE(file_attachment.ok());
  rig_.transport.reset();
  file_.reset();  // and everything else; ASan would complain
}

// A descriptor that cannot serve is refused at once, or by the segment's completion.
TEST_P(TransportContract, BadDescriptorsAreErrors) {
  if (!GetParam().moves_bytes) return;
  make_file(4096);
  make_memory(4096);
  const int write_only = ::open(file_->path().c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(write_only, 0);
  auto attached = transport().attach(transport::FileRef{write_only, -1});
  if (attached.ok()) {
    attachment_ = *attached;
    const auto one = segment(Direction::read, 0, 4096, 0);
    const auto completion = run({one})[one.cookie];
    EXPECT_EQ(completion.result, -EBADF);
  }
  ::close(write_only);
  attached = transport().attach(transport::FileRef{-1, -1});
  if (attached.ok()) {
    attachment_ = *attached;
    EXPECT_EQ(run_one(segment(Direction::read, 0, 4096, 0)), -EBADF);
  }
  EXPECT_TRUE(same_bytes(memory_->read(), before_));
}

TEST_P(TransportContract, BadAddressIsAnErrorNotACrash) {
  if (!GetParam().moves_bytes || !GetParam().reports_fault) return;
  make_file(8192);
  make_memory(4096);
  auto one = segment(Direction::read, 0, 4096, 0);
  one.address = forbidden_address();
  EXPECT_EQ(run_one(one), -EFAULT);
  one.direction = Direction::write;
  EXPECT_EQ(run_one(one), -EFAULT);
  EXPECT_TRUE(same_bytes(file_->contents(), bytes_));
  const auto fine = segment(Direction::read, 0, 4096, 0);  // and it still works
  EXPECT_EQ(run_one(fine), 4096);
}

// An error of one segment is its own: those around it move.
TEST_P(TransportContract, ErrorsStayWithTheirSegment) {
  if (!GetParam().moves_bytes || !GetParam().reports_fault) return;
  make_file(65536);
  make_memory(65536);
  std::vector<Segment> segments;
  for (std::uint64_t at = 0; at < 65536; at += 4096) {
    segments.push_back(segment(Direction::read, at, 4096, at));
    if (at / 4096 % 4 == 1) segments.back().address = forbidden_address();
  }
  const auto completions = run(segments);
  for (const auto& one : segments) {
    const bool bad = one.file_offset / 4096 % 4 == 1;
    EXPECT_EQ(completions.at(one.cookie).result, bad ? -EFAULT : 4096);
  }
}

}  // namespace
}  // namespace straightway::contract
