#pragma once
// Filling Plan::runs: what all doors share.

#include <cstdint>

#include "straightway/plan.hpp"

namespace straightway::plan {

// Sizes of a segment, measured on one H200 behind PCIe Gen5 x16. A piece of the ring: 256 KiB to
// 1 MiB are equal, 2 MiB is slightly less; runs of filled pieces go out as one copy.
inline constexpr std::uint64_t staged_segment_bytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t smallest_piece_bytes = 4096;
// One thread's pread from the page cache is as fast at 1 MiB as above, and a pool shares it well.
inline constexpr std::uint64_t buffered_segment_bytes = std::uint64_t{1} << 20;
// Cold O_DIRECT: eight of 1 MiB reach the disk's rate (measured 1.6 to 1.9 GB/s).
inline constexpr std::uint64_t direct_segment_bytes = std::uint64_t{1} << 20;
// Of nvfs, and of p2pdma by the vendor's library. What KvikIO gives to cuFile at once, and a fourth
// of what nvidia-fs moves at once: not measured.
inline constexpr std::uint64_t vendor_segment_bytes = std::uint64_t{4} << 20;
// Pinned pages need no ring: few large copies keep the link busy, and two in flight leave no gap.
inline constexpr std::uint64_t pinned_segment_bytes = std::uint64_t{256} << 20;
// Below this a hand-off to other threads costs more than the copy (one thread copies 6.4 to 7.4
// GB/s measured, so 256 KiB are about 40 us).
inline constexpr std::uint64_t small_request_bytes = std::uint64_t{256} << 10;

// Whether some of its bytes may go through the vendor's library, which is behind the direct routes
// into CUDA memory.
bool may_take_vendor(const Run& run, SpaceKind space);

// The end of any file, by the kernel's signed offsets.
inline constexpr std::uint64_t largest_end = (std::uint64_t{1} << 63) - 1;

// What of the request can move: reads end at the end of the file where that is known.
FileRange reachable(const Request& request);

// The whole blocks inside a range; size 0 where there is none.
FileRange whole_blocks(const FileRange& range, std::uint64_t block_bytes);

// Appends; an empty run is left out.
void add_run(Plan& plan, const Run& run);

// Appends middle, and what `range` has before and after it as runs like `edge`, each shorter than a
// block of direct I/O.
void add_with_edges(Plan& plan, const FileRange& range, const Run& middle, Run edge);

// A run through the ring, filled or emptied by the page cache; its pieces fit a small ring too.
Run staged_run(const Plan& plan, Reason reason, const FileRange& range);
Run buffered_run(Reason reason, const FileRange& range);

// Every route refused with one reason, and no runs.
void fail(Plan& plan, Reason reason);

// The refusals and the failure of device memory that cannot be reached.
void refuse_device(Plan& plan, Reason reason);

// Routes that carry runs are not refused.
void clear_refusals_of_used(Plan& plan);

// Facts and settings, or those of nothing known where a caller gave none.
const FileFacts& file_of(const Plan& plan);
const MachineFacts& machine_of(const Plan& plan);
const Settings& settings_of(const Plan& plan);

}  // namespace straightway::plan
