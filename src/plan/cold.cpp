#include "plan/cold.hpp"

#include "plan/direct_paths.hpp"
#include "plan/runs.hpp"

namespace straightway::plan {
namespace {

// Where the page cache says nothing of use: the bytes come over a network that does its own
// readahead, cachestat looks at the wrong inode (overlay calls a hot file cold), or all of it is
// memory anyway.
bool tells_nothing(const FileFacts& file) {
  return file.is_network || file.filesystem == "overlay" || file.filesystem == "tmpfs" ||
         file.filesystem == "ramfs" || file.filesystem == "hugetlbfs";
}

Reason reason_of(ColdWay way) {
  switch (way) {
    case ColdWay::kept:
      return Reason::cold_kept;
    case ColdWay::dropped:
      return Reason::cold_dropped;
    case ColdWay::direct:
      return Reason::cold_direct;
    case ColdWay::trimmed:
      return Reason::cold_trimmed;
    case ColdWay::nvfs:
      return Reason::direct_available;
    case ColdWay::same:
      break;
  }
  return Reason::none;
}

bool keeps(const Plan& plan, std::uint64_t size_bytes) {
  const Cache cache = settings_of(plan).cache.value;
  if (cache == Cache::keep) return true;
  return cache == Cache::automatic && fits_well(size_bytes, plan.request.spare_memory_bytes);
}

// Bytes that the page cache is not to keep need not pass through it, nor through the CPU.
bool takes_vendor(const Plan& plan, std::uint32_t block_bytes) {
  const MachineFacts& machine = machine_of(plan);
  return plan.request.memory.space == SpaceKind::cuda && block_bytes != 0 &&
         settings_of(plan).policy.value == Policy::automatic &&
         direct_refusal(vendor_route(machine), file_of(plan), machine) == Reason::none;
}

bool is_whole(const FileRange& piece, std::uint32_t block_bytes) {
  return (piece.offset | piece.size_bytes) % block_bytes == 0;
}

}  // namespace

Residency residency_of(const Look& look, std::uint64_t size_bytes) {
  if (!look.known) return Residency::unknown;
  if (look.resident_bytes >= size_bytes) return Residency::hot;
  return look.resident_bytes == 0 ? Residency::cold : Residency::partly;
}

Way resolve(const Run& run, const FileRange& piece, Residency found, Route vendor_route) {
  Way way{run.route, run.reason, run.direct_io, run.align_bytes};
  const bool cold = found == Residency::cold;
  if (run.cold == ColdWay::same || found == Residency::hot || found == Residency::unknown) {
    return way;
  }
  switch (run.cold) {
    case ColdWay::dropped:
      way.dontcache = true;
      way.trim = cold;  // what readahead brought beside this piece
      break;
    case ColdWay::direct:
      // A granule that is cached in part may be dirty: through the page cache. Into host memory
      // O_DIRECT moves whole blocks only; the ring takes the envelope.
      if (!cold) return way;
      if (run.route == Route::buffered && !is_whole(piece, run.cold_align_bytes)) {
        way.trim = true;
        way.reason = Reason::edge_block;
        return way;
      }
      way.direct_io = true;
      way.align_bytes = run.cold_align_bytes;
      if (run.route == Route::buffered) way.route = Route::direct_host;
      break;
    case ColdWay::nvfs:
      // Blocks that are not whole, or may be dirty, through the ring.
      if (!cold || !is_whole(piece, run.cold_align_bytes)) {
        way.trim = cold;
        return way;
      }
      way.route = vendor_route;
      way.direct_io = true;
      way.align_bytes = run.cold_align_bytes;
      break;
    case ColdWay::trimmed:
      way.trim = cold;
      break;
    default:
      break;
  }
  way.reason = run.cold_reason;
  return way;
}

bool fills_cache(const Way& way, Residency found) {
  return !way.direct_io && (found == Residency::cold || found == Residency::partly);
}

bool fits_well(std::uint64_t size_bytes, std::uint64_t spare_memory_bytes) {
  return size_bytes <= kept_unasked_bytes || size_bytes <= spare_memory_bytes / 2;
}

void decide_cold(const Plan& plan, Run& run, std::uint32_t block_bytes, bool direct_fits) {
  if (plan.request.direction == Direction::write || run.file.size_bytes <= small_request_bytes) {
    return;
  }
  const FileFacts& file = file_of(plan);
  if (tells_nothing(file)) {
    run.cold_reason = Reason::residency_unknown;
    return;
  }
  if (keeps(plan, run.file.size_bytes)) {
    run.cold = ColdWay::kept;
  } else if (takes_vendor(plan, block_bytes)) {
    run.cold = ColdWay::nvfs;
    run.cold_align_bytes = block_bytes;
  } else if (file.dontcache) {
    run.cold = ColdWay::dropped;
  } else if (block_bytes != 0 && direct_fits) {
    run.cold = ColdWay::direct;
    run.cold_align_bytes = block_bytes;
  } else {
    run.cold = ColdWay::trimmed;
  }
  run.cold_reason = reason_of(run.cold);
}

}  // namespace straightway::plan
