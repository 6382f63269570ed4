#pragma once
// What is in the page cache, and how a piece of a run is read because of it. Pure: drive/ brings
// what it looked up.

#include <cstdint>

#include "straightway/plan.hpp"

namespace straightway::plan {

// Residency is known per granule, looked up a window at a time.
struct CacheSteps {
  std::uint64_t granule_bytes = std::uint64_t{1} << 20;
  std::uint64_t window_bytes = std::uint64_t{64} << 20;
};
// Up to this size a read is kept without a look at the machine's memory.
inline constexpr std::uint64_t kept_unasked_bytes = std::uint64_t{64} << 20;

enum class Residency : std::uint8_t {
  unknown,
  hot,
  cold,
  partly,  // some of it; some of that may be dirty
};

// One look at a range.
struct Look {
  bool known = false;
  std::uint64_t resident_bytes = 0;
};
Residency residency_of(const Look& look, std::uint64_t size_bytes);

// How one piece is read.
struct Way {
  Route route = Route::buffered;
  Reason reason = Reason::none;
  bool direct_io = false;
  std::uint32_t align_bytes = 1;
  bool dontcache = false;
  bool trim = false;
};
// vendor_route: of storage DMA into the GPU's memory, nvfs or p2pdma.
Way resolve(const Run& run, const FileRange& piece, Residency found,
            Route vendor_route = Route::nvfs);

// Whether a piece waits for the disk while the page cache is filled.
bool fills_cache(const Way& way, Residency found);

// Whether a read of so many bytes fits well within what memory there is to spare.
bool fits_well(std::uint64_t size_bytes, std::uint64_t spare_memory_bytes);

// Sets how the run's cold bytes are read. direct_fits: O_DIRECT serves this run's memory.
void decide_cold(const Plan& plan, Run& run, std::uint32_t block_bytes, bool direct_fits);

}  // namespace straightway::plan
