#pragma once
// A transport over the simulated world: takes what it likes, completes late, out of order, in part
// or not at all, as the seed says. It checks what drive/ asks of it.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/sim/world.hpp"
#include "transport/transport.hpp"

namespace straightway::sim {

class SimulatedTransport final : public transport::Transport {
 public:
  SimulatedTransport(World& world, std::uint32_t depth, bool takes_envelopes, bool direct);

  const transport::Capabilities& capabilities() const override { return capabilities_; }
  Result<transport::Attachment> attach(const transport::FileRef& file) override;
  Result<transport::Attachment> attach(const MemoryRange& memory) override;
  std::size_t submit(std::span<const transport::Segment> segments) override;
  // Those whose time has come, in any order.
  std::size_t reap(std::span<transport::Completion> completions) override;

  // When the next one is due; UINT64_MAX: none in flight.
  std::uint64_t next_due_ns() const;

 private:
  struct InFlight {
    transport::Segment segment;
    std::size_t leg = 0;
    std::uint64_t due_ns = 0;
  };

  void check(const transport::Segment& segment, std::size_t leg);
  void check_cache(const transport::Segment& segment);
  void check_envelope(const transport::Segment& segment, std::size_t leg);
  std::size_t leg_of(const transport::Segment& segment);
  transport::Completion complete(const InFlight& done);
  std::int64_t result_of(const InFlight& done, transport::Completion& completion);
  std::uint64_t move(const InFlight& done);

  World& world_;
  bool direct_;
  transport::Capabilities capabilities_;
  std::vector<InFlight> in_flight_;
};

}  // namespace straightway::sim
