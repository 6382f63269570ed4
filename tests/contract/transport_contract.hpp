#pragma once
// The fixture of the contract's tests: one rig, one file, one memory.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/contract/rigs.hpp"
#include "tests/contract/run_segments.hpp"
#include "tests/contract/test_file.hpp"

namespace straightway::contract {

// "host" or "cuda", as main() was told.
std::string& chosen_space();

class TransportContract : public ::testing::TestWithParam<RigKind> {
 protected:
  static constexpr std::uint64_t align_bytes = 4096;

  void SetUp() override {
    auto made = GetParam().make();
    if (!made && made.error().kind == ErrorKind::unsupported && chosen_space() == "host") {
      GTEST_SKIP() << made.error().message();
    }
    ASSERT_TRUE(made.ok()) << made.error().message();
    rig_ = std::move(*made);
  }

  void make_file(std::size_t size_bytes) {
    bytes_ = random_bytes(size_bytes, 7);
    file_.emplace(bytes_);
    auto attached = transport().attach(file_->ref());
    ASSERT_TRUE(attached.ok()) << attached.error().message();
    attachment_ = *attached;
  }
  void make_memory(std::size_t size_bytes) {
    memory_ = GetParam().memory(size_bytes);
    ASSERT_NE(memory_, nullptr);
    before_ = random_bytes(size_bytes, 11);
    memory_->write(before_);
    ASSERT_TRUE(transport().attach(memory_->range()).ok());
  }

  transport::Transport& transport() { return *rig_.transport; }
  const transport::Capabilities& capabilities() { return rig_.transport->capabilities(); }

  // memory_offset: where in memory. The envelope is as wide as the transport may be asked for.
  transport::Segment segment(Direction direction, std::uint64_t file_offset,
                             std::uint64_t size_bytes, std::uint64_t memory_offset,
                             bool direct_io = false) {
    transport::Segment made;
    made.cookie = ++last_cookie_ * 0x1'0000'0001;  // both halves matter
    made.direction = direction;
    made.direct_io = direct_io;
    made.file = direct_io ? attachment_.direct_token : attachment_.token;
    made.address = memory_->range().address + memory_offset;
    made.file_offset = file_offset;
    made.size_bytes = size_bytes;
    made.envelope_offset = file_offset;
    made.envelope_bytes = size_bytes;
    if (capabilities().takes_envelopes && direction == Direction::read) {
      made.envelope_offset = file_offset / align_bytes * align_bytes;
      const auto end = (file_offset + size_bytes + align_bytes - 1) / align_bytes * align_bytes;
      made.envelope_bytes = end - made.envelope_offset;
    }
    return made;
  }

  // Whether a direct transfer of this shape is legal on this rig.
  bool direct_fits(std::uint64_t file_offset, std::uint64_t size_bytes, std::uint64_t memory_offset,
                   Direction direction) {
    if (!file_->has_direct() || !GetParam().whole_file) return false;
    if (capabilities().takes_envelopes && direction == Direction::read) return true;
    const auto aligned = (file_offset | size_bytes) % align_bytes == 0;
    return aligned && (capabilities().takes_envelopes || memory_offset % align_bytes == 0);
  }

  std::map<std::uint64_t, transport::Completion> run(
      const std::vector<transport::Segment>& segments, const RunOptions& options = {}) {
    return run_segments(rig_, segments, options);
  }

  // Runs one, and what it moved.
  std::int64_t run_one(const transport::Segment& one) { return run({one})[one.cookie].result; }

  std::optional<TestFile> file_;
  std::vector<std::byte> bytes_;  // of the file, at first
  std::unique_ptr<TestMemory> memory_;
  std::vector<std::byte> before_;  // of the memory, at first
  transport::Attachment attachment_;
  std::uint64_t last_cookie_ = 0;
  Rig rig_;  // last: the transport goes before what it moves
};

}  // namespace straightway::contract
