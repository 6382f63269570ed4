#pragma once
// What one copier moves at once: segments side by side in one region of the ring, and the copies
// that carry them to or from the device. A value; whoever holds it is told by its state.

#include <cstdint>
#include <vector>

#include "transport/transport.hpp"

namespace straightway::transport {

struct Load {
  enum class State : std::uint8_t {
    filling,      // a copier reads the file into the ring
    copy_waits,   // for a copy between ring and device
    copying,      // until its ticket is reached
    drain_waits,  // for a copier that writes the ring to the file
    draining,
    done,  // reported; the region is given back in ring order
  };
  // One copy: offset in the ring, address on the device.
  struct Extent {
    std::uint64_t at = 0;
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
  };

  State state = State::done;
  Direction direction = Direction::read;
  std::uint64_t at = 0;  // of the region
  std::uint64_t size_bytes = 0;
  std::uint64_t ticket = 0;
  std::vector<Segment> segments;
  std::vector<std::uint64_t> places;    // of each segment's envelope, in the ring
  std::vector<Completion> completions;  // of each segment
  std::vector<Extent> extents;          // those that touch are one

  // Room for this many segments; all below allocates nothing then. Throws std::bad_alloc.
  void reserve(std::size_t count);
  void begin(Direction direction, std::uint64_t at);
  void add(const Segment& segment);
  // The segment as the host transport sees it: its envelope, in the ring.
  Segment host_segment(std::size_t index, std::byte* ring) const;
  // What the host moved of it. Of a read: the copies to come.
  void host_done(std::size_t index, const Completion& completion);
  // Moves the segments by a host transport that completes on submit. ring: where the offset 0 of
  // the region's part of the ring would lie.
  void move_by(Transport& host, std::byte* ring);
  void fail(const std::shared_ptr<const Error>& error);
  // Whether both can leave as one copy: each is one extent, and this one goes on where `before`
  // ends, in the ring and on the device.
  bool continues(const Load& before) const;

 private:
  void add_extent(const Extent& extent);
};

// Whether it goes from memory into the page cache.
bool writes_to_cache(const Segment& segment);

// Direct I/O: eight of 1 MiB reach a disk's rate, and the fewer bytes they turn through, the faster
// is a virtual disk, whose host copies them. 1 GiB by O_DIRECT into a GPU, medians of 14 reads in
// turns, GB/s: plain O_DIRECT, eight of 1 MiB 2.80; through 9, 10, 12 MiB 2.77, 2.66, 2.67; through
// 16 MiB 2.43; through 58 MiB 2.40.
inline constexpr std::uint32_t most_direct_copiers = 8;
// How wide the window of an empty ring may begin for such a segment. UINT64_MAX: as wide as it is,
// and where more would help it grows and widens.
std::uint64_t most_window_bytes(const Segment& segment);

// The payload of a segment that lies in what the host moved of the envelope.
std::int64_t payload_moved(const Segment& segment, std::int64_t envelope_moved);

}  // namespace straightway::transport
