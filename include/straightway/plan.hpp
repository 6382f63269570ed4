#pragma once
// The plan: what will be done with a request, by both layers, and why. A value: it can be printed,
// compared and kept, and nothing moved to make it.

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "straightway/facts.hpp"
#include "straightway/route.hpp"
#include "straightway/settings.hpp"

namespace straightway {

// What a caller wants. The sizes of both ranges are equal once the front door has checked them.
struct Request {
  Direction direction = Direction::read;
  Door door = Door::straightway;
  FileRange file;
  MemoryRange memory;
  std::uint64_t file_size_bytes = 0;  // when it was planned; reads end there
  bool registered = false;            // cuFile door: the buffer was registered
  // What the machine and the cgroup have to spare for the page cache; UINT64_MAX: not known, or not
  // looked up (the request is small, or nothing depends on it).
  std::uint64_t spare_memory_bytes = UINT64_MAX;
  bool operator==(const Request&) const = default;
};

// Pieces of one range: count - 1 pieces of piece_bytes, the last takes what is left (it may be
// shorter or longer). count 0: nothing.
struct Cut {
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t piece_bytes = 0;
  std::uint64_t count = 0;
  bool operator==(const Cut&) const = default;
  FileRange piece(std::uint64_t i) const;  // i < count
};

// How the cold MiB of a run are read; hot ones, and those of which nothing is known, go as the run
// says. `same`: nothing is looked up.
enum class ColdWay : std::uint8_t {
  same,
  kept,     // by the kernel's own readahead; they stay in the page cache
  dropped,  // RWF_DONTCACHE
  direct,   // O_DIRECT
  trimmed,  // buffered, then dropped from the page cache
  nvfs,     // storage DMA into the GPU's memory, by the vendor's library: nvfs or p2pdma
};
const char* to_string(ColdWay way);

// What of a range was in the page cache when it was looked up.
struct CacheFound {
  std::uint64_t hot_bytes = 0;
  std::uint64_t cold_bytes = 0;
  std::uint64_t unknown_bytes = 0;
  bool operator==(const CacheFound&) const = default;
  bool looked() const { return (hot_bytes | cold_bytes | unknown_bytes) != 0; }
};

// A stretch of the request that travels one way, in segments. Without groups they end at absolute
// file offsets that are multiples of segment_bytes, a power of two. With groups the stretch is cut
// from its start into pieces of group_bytes, and each of those into group_segments of
// segment_bytes, the last of which takes what is left.
struct Run {
  Route route = Route::buffered;
  Reason reason = Reason::none;
  FileRange file;  // the payload
  std::uint64_t segment_bytes = 0;
  std::uint32_t align_bytes = 1;  // the envelope's alignment; 1: envelope = payload
  bool direct_io = false;         // the storage side is O_DIRECT
  ColdWay cold = ColdWay::same;
  Reason cold_reason = Reason::none;
  std::uint32_t cold_align_bytes = 1;  // of cold MiB by O_DIRECT
  std::uint64_t group_bytes = 0;       // 0: no groups
  std::uint64_t group_segments = 0;
  bool operator==(const Run&) const = default;
};

// One transfer that a transport accepts as it is. The payload is what the caller asked for; the
// envelope, around it, is what is moved (wider only for O_DIRECT fills of the ring).
struct PlannedSegment {
  FileRange payload;
  FileRange envelope;
  bool operator==(const PlannedSegment&) const = default;
};

std::uint64_t segment_count(const Run& run);
PlannedSegment segment(const Run& run, std::uint64_t i);  // i < segment_count(run)

// What the counters of the cuFile layer will show: n requests or parts, and the way each is
// counted.
struct LayerCounters {
  std::uint64_t n = 0;
  std::uint64_t nvfs = 0;
  std::uint64_t p2pdma = 0;
  std::uint64_t posix = 0;
  bool operator==(const LayerCounters&) const = default;
};

// The front layer's decision (KvikIO's rules). used is false at the other doors.
struct FrontDecision {
  bool used = false;
  bool to_cufile = false;  // else its own POSIX engine
  bool on_caller_thread = false;
  Reason reason = Reason::none;
  Cut tasks;
  bool operator==(const FrontDecision&) const = default;
};

// The cuFile layer's decision, for one request of that layer: a task of the front layer, or the
// whole request. last differs where the last task is shorter.
struct CufileDecision {
  bool used = false;
  bool refused = false;  // allow_compat_mode is false and there is no direct path
  Reason reason = Reason::none;
  Cut parts;
  Cut last_parts;
  LayerCounters counters;  // over all requests of this plan
  bool operator==(const CufileDecision&) const = default;
};

inline constexpr std::size_t run_limit = 3;  // head edge, middle, tail edge

struct Plan {
  Request request;
  FrontDecision front;
  CufileDecision cufile;
  std::array<Run, run_limit> runs{};
  std::uint8_t run_count = 0;
  std::array<Reason, route_count> refused{};  // by Route; none: it is used, or was not asked
  Reason failure = Reason::none;  // the request cannot be served as asked; runs is empty then
  CacheFound first_window;        // by explain: the first 64 MiB, where residency will decide
  std::uint64_t pin_bytes = 0;    // of the file, that pins hold
  std::shared_ptr<const FileFacts> file;
  std::shared_ptr<const MachineFacts> machine;
  std::shared_ptr<const Settings> settings;
  std::shared_ptr<const PeerFacts> peer;  // of peer memory, else null

  bool operator==(const Plan& other) const;  // compares facts and settings by value
  std::string to_text() const;  // for people: each layer, each route, each refusal with its reason
  std::string to_json() const;
};

}  // namespace straightway
