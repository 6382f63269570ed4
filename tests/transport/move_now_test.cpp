#include "transport/move_now.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "transport/null.hpp"

namespace straightway::transport {
namespace {

std::vector<Segment> segments_of(std::size_t count) {
  std::vector<Segment> segments(count);
  for (std::size_t i = 0; i < count; ++i) {
    segments[i].cookie = i + 1;
    segments[i].size_bytes = 10;
  }
  return segments;
}

TEST(MoveNow, GivesEachSegmentItsCompletionPastTheTransportsDepth) {
  Null host(3);
  const auto segments = segments_of(8);
  std::vector<Completion> completions(8);
  move_now(host, segments, completions);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(completions[i].cookie, i + 1);
    EXPECT_EQ(completions[i].result, 10);
  }
}

// Takes one, keeps the completion of a second and runs out of memory.
class OutOfMemory final : public Transport {
 public:
  const Capabilities& capabilities() const override { return inner_.capabilities(); }
  Result<Attachment> attach(const FileRef& file) override { return inner_.attach(file); }
  Result<Attachment> attach(const MemoryRange& memory) override { return inner_.attach(memory); }
  std::size_t submit(std::span<const Segment> segments) override {
    inner_.submit(segments.first(1));
    if (++calls_ == 2) throw std::bad_alloc();
    return 1;
  }
  std::size_t reap(std::span<Completion> completions) override { return inner_.reap(completions); }

 private:
  Null inner_;
  int calls_ = 0;
};

TEST(MoveNow, LeavesNothingBehindWhereMemoryRunsOut) {
  OutOfMemory host;
  const auto segments = segments_of(4);
  std::vector<Completion> completions(4);
  move_now(host, segments, completions);
  EXPECT_EQ(completions[0].result, 10);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(completions[i].cookie, i + 1);
    EXPECT_EQ(completions[i].result, -ENOMEM);
  }
  Completion stale;
  EXPECT_EQ(host.reap({&stale, 1}), 0U);
}

}  // namespace
}  // namespace straightway::transport
