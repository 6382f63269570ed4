#include "transport/null.hpp"

#include <algorithm>

namespace straightway::transport {

Null::Null(std::uint32_t depth, SpaceKind space) {
  capabilities_.name = "null";
  capabilities_.space = space;
  capabilities_.largest_segment_bytes = std::uint64_t{1} << 30;
  capabilities_.depth = depth;
  capabilities_.takes_envelopes = true;
  done_.reserve(depth);
}

Result<Attachment> Null::attach(const FileRef& /*file*/) { return Attachment{}; }

Result<Attachment> Null::attach(const MemoryRange& memory) {
  return Attachment{.owner = nullptr, .token = memory.address, .direct_token = 0};
}

std::size_t Null::submit(std::span<const Segment> segments) {
  const auto taken = std::min(segments.size(), capabilities_.depth - done_.size());
  for (const auto& segment : segments.first(taken)) {
    Completion completion;
    completion.cookie = segment.cookie;
    completion.result = static_cast<std::int64_t>(segment.size_bytes);
    done_.push_back(std::move(completion));
  }
  return taken;
}

std::size_t Null::reap(std::span<Completion> completions) {
  const auto count = std::min(completions.size(), done_.size());
  const auto first = done_.begin();
  const auto last = first + static_cast<std::ptrdiff_t>(count);
  std::move(first, last, completions.begin());
  done_.erase(first, last);
  return count;
}

}  // namespace straightway::transport
