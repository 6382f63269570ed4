#pragma once
// Moves nothing and completes at once: the measuring stick for the framework's own cost, and the
// shortest example of the contract. Never wired into a Context.

#include <cstdint>
#include <vector>

#include "transport/transport.hpp"

namespace straightway::transport {

class Null final : public Transport {
 public:
  explicit Null(std::uint32_t depth = 64, SpaceKind space = SpaceKind::host);
  const Capabilities& capabilities() const override { return capabilities_; }
  Result<Attachment> attach(const FileRef& file) override;
  Result<Attachment> attach(const MemoryRange& memory) override;
  std::size_t submit(std::span<const Segment> segments) override;
  std::size_t reap(std::span<Completion> completions) override;

 private:
  Capabilities capabilities_;
  std::vector<Completion> done_;  // never more than depth, so it allocates once
};

}  // namespace straightway::transport
