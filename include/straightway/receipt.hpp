#pragma once
// The receipt: what really happened. A value, made when nothing of the request is in flight any
// more, and the only input of the statistics.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "straightway/plan.hpp"

namespace straightway {

enum class EvidenceKind : std::uint8_t { none, observed, claimed };

// What saw the bytes move.
enum class Witness : std::uint8_t {
  none,
  own_copy,        // our own engine copied them, and its completion was seen
  thread_io,       // /proc/thread-self/io of the threads that worked for the request
  vendor_library,  // a library said so
  kernel,          // the kernel accepted the direct I/O, which proves no device (tmpfs does too)
  trial,           // thread_io, and a poisoned block of the same way arrived in published memory
  nvidia_fs,       // the kernel module's counters moved by exactly what our requests claim
};
enum class Scope : std::uint8_t { none, request, process, machine };

struct Evidence {
  EvidenceKind kind = EvidenceKind::none;
  Witness witness = Witness::none;
  Scope scope = Scope::none;
  bool operator==(const Evidence&) const = default;
};
const char* to_string(EvidenceKind kind);
const char* to_string(Witness witness);
const char* to_string(Scope scope);

// The bytes of one route.
struct RouteShare {
  std::uint64_t bytes = 0;
  std::uint64_t segments = 0;
  Reason reason = Reason::none;
  Evidence evidence;
  bool operator==(const RouteShare&) const = default;
};

// CLOCK_MONOTONIC, nanoseconds; 0: it did not come to that.
struct Times {
  std::uint64_t queued_ns = 0;
  std::uint64_t started_ns = 0;
  std::uint64_t first_byte_ns = 0;
  std::uint64_t done_ns = 0;
  bool operator==(const Times&) const = default;
};

// The parts of a many-range receipt, as arrays in the order of the call.
struct RangeTable {
  std::vector<std::uint64_t> offset;
  std::vector<std::uint64_t> wanted_bytes;
  std::vector<std::uint64_t> moved_bytes;
  bool operator==(const RangeTable&) const = default;
};

struct Receipt {
  Direction direction = Direction::read;
  Door door = Door::straightway;
  MemoryRange memory;             // of the first range
  std::uint64_t file_offset = 0;  // of the first range
  std::uint64_t wanted_bytes = 0;
  std::uint64_t moved_bytes = 0;
  bool ended_early = false;       // the file ended first ...
  std::uint64_t end_of_file = 0;  // ... here
  std::array<RouteShare, route_count> routes{};
  std::array<Reason, route_count> refused{};
  std::uint32_t retries = 0;       // EINTR, EAGAIN, short transfers: pieces submitted again
  std::uint32_t fallbacks = 0;     // segments that took another route after a listed error
  std::int32_t fallback_code = 0;  // the first one's errno
  bool disk_measured = false;      // whether disk_bytes was observed
  std::uint64_t disk_bytes = 0;    // read from storage on behalf of this request
  CacheFound found;                // what was looked up ahead of the bytes; none of it: nothing was
  Reason cold_reason = Reason::none;  // how cold bytes were read, and why
  std::uint32_t threads = 0;          // that worked for it
  std::uint64_t pinned_bytes = 0;     // of the ring
  std::uint64_t pin_bytes = 0;        // of the file's page cache, that pins held
  Times times;
  LayerCounters layer;                       // what the cuFile layer counted
  std::shared_ptr<const RangeTable> ranges;  // many-range calls only
  std::shared_ptr<const FileFacts> file;
  std::shared_ptr<const MachineFacts> machine;
  std::shared_ptr<const Settings> settings;
  std::shared_ptr<const PeerFacts> peer;  // of peer memory, else null

  bool operator==(const Receipt& other) const;  // compares what is pointed to by value
  std::string to_text() const;
  std::string to_json() const;
};

}  // namespace straightway
