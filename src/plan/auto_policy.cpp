// Straightway's own door: which way is best here, as far as it is known before anything moves.

#include <algorithm>

#include "plan/cold.hpp"
#include "plan/direct_paths.hpp"
#include "plan/planner.hpp"
#include "plan/runs.hpp"

namespace straightway::plan {
namespace {

// What the decision looks at, gathered once.
struct Situation {
  FileRange range;  // what can move
  Policy policy = Policy::automatic;
  Cache cache = Cache::automatic;
  std::uint32_t block_bytes = 0;  // 0: no direct I/O
};

Situation situation_of(const Plan& plan) {
  const Settings& settings = settings_of(plan);
  return {reachable(plan.request), settings.policy.value, settings.cache.value,
          direct_block_bytes(file_of(plan), machine_of(plan))};
}

// Host memory.

// Memory that does not exist yet (address 0, a plan made ahead) will be aligned as it must be.
bool memory_fits(const Plan& plan, std::uint64_t middle_offset) {
  const FileFacts& file = file_of(plan);
  const std::uint64_t align = file.direct_memory_align_bytes != 0 ? file.direct_memory_align_bytes
                                                                  : file.direct_offset_align_bytes;
  const std::uint64_t address = plan.request.memory.address;
  return address == 0 || (address + (middle_offset - plan.request.file.offset)) % align == 0;
}

// Why O_DIRECT cannot serve this range of host memory; none: it can.
Reason direct_host_refusal(const Plan& plan, const Situation& now) {
  if (now.block_bytes == 0) return Reason::no_direct_io;
  const FileRange middle = whole_blocks(now.range, now.block_bytes);
  if (middle.size_bytes == 0) return Reason::request_too_small;
  return memory_fits(plan, middle.offset) ? Reason::none : Reason::memory_misaligned;
}

void add_direct_host(Plan& plan, const Situation& now, Reason reason) {
  const Run middle{Route::direct_host,   reason,          whole_blocks(now.range, now.block_bytes),
                   direct_segment_bytes, now.block_bytes, true};
  add_with_edges(plan, now.range, middle, buffered_run(Reason::edge_block, now.range));
  plan.refused[index(Route::buffered)] =
      now.policy == Policy::direct ? Reason::policy_forbids : Reason::cache_bypass;
}

void add_buffered(Plan& plan, const Situation& now, Reason direct_refusal) {
  Reason reason = Reason::host_memory;
  if (now.range.size_bytes < small_request_bytes) reason = Reason::small_request;
  if (now.policy == Policy::staged) {
    reason = Reason::policy_staged;
    direct_refusal = Reason::policy_forbids;
  }
  plan.refused[index(Route::direct_host)] =
      direct_refusal == Reason::none ? Reason::not_preferred : direct_refusal;
  Run run = buffered_run(reason, now.range);
  const bool direct_fits = now.policy == Policy::automatic && now.block_bytes != 0 &&
                           memory_fits(plan, whole_blocks(now.range, now.block_bytes).offset);
  decide_cold(plan, run, now.block_bytes, direct_fits);
  add_run(plan, run);
}

void plan_host(Plan& plan, const Situation& now) {
  plan.refused.fill(Reason::space_is_host);
  const Reason direct_refusal = direct_host_refusal(plan, now);
  const bool must = now.policy == Policy::direct;
  const bool wants = must || (now.policy == Policy::automatic && now.cache == Cache::bypass);
  if (wants && direct_refusal == Reason::none) {
    return add_direct_host(plan, now, must ? Reason::policy_direct : Reason::cache_bypass);
  }
  if (!must) return add_buffered(plan, now, direct_refusal);
  // The file ends inside the first block: what is left of the request is an edge.
  if (direct_refusal == Reason::request_too_small &&
      now.range.size_bytes < plan.request.file.size_bytes) {
    plan.refused[index(Route::direct_host)] = direct_refusal;
    if (now.range.size_bytes > 0) add_run(plan, buffered_run(Reason::edge_block, now.range));
    return;
  }
  plan.refused[index(Route::direct_host)] = direct_refusal;
  plan.refused[index(Route::buffered)] = Reason::policy_forbids;
  fail(plan, direct_refusal);
}

// Device memory.

// Reads move whole blocks into the ring and copy the wanted bytes out of it; a write may only carry
// whole blocks that the caller gave, so its edges go through the page cache.
void add_staged_direct(Plan& plan, const Situation& now, Run run) {
  if (plan.request.direction == Direction::read) {
    run.align_bytes = now.block_bytes;
    run.direct_io = true;
    return add_run(plan, run);
  }
  Run middle = run;
  middle.file = whole_blocks(now.range, now.block_bytes);
  middle.align_bytes = now.block_bytes;
  middle.direct_io = true;
  if (middle.file.size_bytes > 0) return add_with_edges(plan, now.range, middle, run);
  run.reason = Reason::edge_block;
  add_run(plan, run);
}

void add_staged(Plan& plan, const Situation& now) {
  Reason reason = Reason::device_memory;
  if (now.policy == Policy::staged) reason = Reason::policy_staged;
  Run run = staged_run(plan, reason, now.range);
  const bool direct_fits = now.block_bytes != 0 && now.block_bytes <= run.segment_bytes;
  if (now.cache == Cache::bypass && direct_fits) return add_staged_direct(plan, now, run);
  decide_cold(plan, run, now.block_bytes, direct_fits);
  add_run(plan, run);
}

// The longest stretch of the range that pins hold; size 0: none.
FileRange pinned_part(const FileRange& range, const std::vector<FileRange>& pinned) {
  FileRange longest;
  for (const auto& extent : pinned) {
    const auto begin = std::max(range.offset, extent.offset);
    const auto end = std::min(range.offset + range.size_bytes, extent.offset + extent.size_bytes);
    if (end > begin && end - begin > longest.size_bytes) longest = {begin, end - begin};
  }
  return longest;
}

Reason pin_refusal(const Plan& plan, const Facts& facts) {
  if (facts.pinned.empty()) return facts.pin_lost ? Reason::pin_lost : Reason::not_pinned;
  if (plan.request.direction == Direction::write) return Reason::pinned_for_reads;
  const Policy policy = settings_of(plan).policy.value;
  return policy == Policy::automatic ? Reason::not_pinned : Reason::policy_forbids;
}

// What lies before and behind the pinned part goes through the ring.
void add_device(Plan& plan, const Situation& now, const Facts& facts) {
  const bool may_pin = now.policy == Policy::automatic && plan.request.direction == Direction::read;
  const FileRange middle = may_pin ? pinned_part(now.range, facts.pinned) : FileRange{};
  if (middle.size_bytes == 0) return add_staged(plan, now);
  const auto middle_end = middle.offset + middle.size_bytes;
  const auto end = now.range.offset + now.range.size_bytes;
  Situation part = now;
  part.range = {now.range.offset, middle.offset - now.range.offset};
  add_staged(plan, part);
  add_run(plan, {Route::pinned_cache, Reason::pinned, middle, pinned_segment_bytes});
  part.range = {middle_end, end - middle_end};
  add_staged(plan, part);
  plan.refused[index(Route::staged)] = Reason::not_preferred;
}

// The direct route that is there, or none of them.
bool add_direct_device(Plan& plan, const Situation& now, Reason reason) {
  const FileRange middle =
      now.block_bytes == 0 ? FileRange{} : whole_blocks(now.range, now.block_bytes);
  for (const Route route : {Route::nvfs, Route::p2pdma}) {
    Reason& refusal = plan.refused[index(route)];
    if (refusal != Reason::none) continue;
    if (middle.size_bytes == 0) {
      refusal = Reason::request_too_small;
      continue;
    }
    const Run run{route, reason, middle, vendor_segment_bytes, now.block_bytes, true};
    add_with_edges(plan, now.range, run, staged_run(plan, Reason::edge_block, now.range));
    return true;
  }
  return false;
}

void refuse_unused_direct(Plan& plan, Reason reason) {
  for (const Route route : {Route::nvfs, Route::p2pdma}) {
    Reason& refusal = plan.refused[index(route)];
    if (refusal == Reason::none) refusal = reason;
  }
}

void plan_device(Plan& plan, const Situation& now, const Facts& facts) {
  const Reason no_device = device_refusal(plan.request.memory.device, machine_of(plan));
  if (no_device != Reason::none) return refuse_device(plan, no_device);
  plan.refused.fill(Reason::space_is_device);
  for (const Route route : {Route::nvfs, Route::p2pdma}) {
    plan.refused[index(route)] = direct_refusal(route, file_of(plan), machine_of(plan));
  }
  plan.refused[index(Route::pinned_cache)] = pin_refusal(plan, facts);
  plan.refused[index(Route::staged)] = Reason::policy_forbids;
  if (now.policy == Policy::direct) {
    const bool added = add_direct_device(plan, now, Reason::policy_direct);
    refuse_unused_direct(plan, Reason::not_preferred);
    if (!added) fail(plan, plan.refused[index(Route::nvfs)]);
    return;
  }
  // Bytes that are to pass by the page cache come from the disk in any case.
  const bool passes_by =
      now.policy == Policy::automatic && now.cache == Cache::bypass && facts.pinned.empty();
  if (passes_by && add_direct_device(plan, now, Reason::cache_bypass)) {
    plan.refused[index(Route::staged)] = Reason::not_preferred;
    return refuse_unused_direct(plan, Reason::not_preferred);
  }
  // Pinned bytes need no copy by the CPU; other hot bytes reach the device fastest through the
  // ring, and unknown ones are never wrong there.
  refuse_unused_direct(
      plan, now.policy == Policy::staged ? Reason::policy_forbids : Reason::not_preferred);
  add_device(plan, now, facts);
}

}  // namespace

void auto_policy(Plan& plan, const Facts& facts) {
  const Situation now = situation_of(plan);
  if (now.range.size_bytes == 0) return;
  if (plan.request.memory.space == SpaceKind::host) {
    plan_host(plan, now);
  } else {
    plan_device(plan, now, facts);
  }
  clear_refusals_of_used(plan);
}

}  // namespace straightway::plan
