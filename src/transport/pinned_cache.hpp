#pragma once
// Reads of device memory straight from page-cache pages that are registered with the driver
// (memory/file_pins.hpp): no copy by the CPU, no ring.
//
// A segment whose pages are not pinned (any more), or whose pin does not stand its checks before
// and after the copy, completes with -ESTALE: whatever was copied counts for nothing, and the bytes
// have to be read another way.

#include <memory>
#include <optional>
#include <vector>

#include "memory/file_pins.hpp"
#include "memory/space.hpp"
#include "transport/fifo.hpp"
#include "transport/transport.hpp"

namespace straightway::transport {

// Large copies keep the engine at the link's rate; two in flight leave no gap.
inline constexpr std::uint64_t pinned_segment_bytes = std::uint64_t{256} << 20;

class PinnedCache final : public Transport {
 public:
  explicit PinnedCache(std::unique_ptr<memory::Lane> lane);
  ~PinnedCache() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  // An error where the file never had pins.
  Result<Attachment> attach(const FileRef& file) override;
  Result<Attachment> attach(const MemoryRange& memory) override;
  std::size_t submit(std::span<const Segment> segments) override;
  std::size_t reap(std::span<Completion> completions) override;

 private:
  // A segment's share of one pinned range.
  struct Part {
    memory::FilePins::Use use;
    FileRange range;
  };
  struct Flight {
    Segment segment;
    std::vector<Part> parts;
    std::uint64_t ticket = 0;  // of its last copy
    std::int32_t code = 0;     // what kept the rest of it from being copied
  };
  static std::optional<std::vector<Part>> find_parts(const Segment& segment);
  void start(const Segment& segment);
  void copy_parts(const Segment& segment, std::vector<Part> parts);
  void land(Flight& flight);
  void take_finished_copies();
  void finish(const Segment& segment, std::int64_t result,
              std::shared_ptr<const Error> error = nullptr);
  void fail_flights(const Error& error);

  std::unique_ptr<memory::Lane> lane_;
  Capabilities capabilities_;
  // Room for both is there from the start: with copies under way nothing may be forgotten.
  Fifo<Flight> flights_;  // in the lane's order
  std::uint64_t flying_bytes_ = 0;
  Fifo<Completion> done_;
  std::shared_ptr<const Error> broken_;  // the lane's sticky error
};

// One range at once, on the caller's thread, ordered in the user's stream: true when the bytes are
// there, false when the range is not pinned or the pin did not stand (then they have to be read
// another way). Nothing is in flight afterwards.
Result<bool> copy_pinned(memory::FilePins& pins, memory::Desk& desk, const FileRange& range,
                         std::uint64_t device_address, std::optional<void*> stream);

}  // namespace straightway::transport
