#include "plan/runs.hpp"

#include <algorithm>
#include <bit>

namespace straightway::plan {
namespace {

template <class T>
const T& value_or_default(const std::shared_ptr<const T>& pointer) {
  static const T unknown{};
  return pointer ? *pointer : unknown;
}

}  // namespace

FileRange reachable(const Request& request) {
  const FileRange& wanted = request.file;
  std::uint64_t end = largest_end;
  if (request.direction == Direction::read && request.file_size_bytes > 0) {
    end = std::min(end, request.file_size_bytes);
  }
  if (wanted.offset >= end) return {wanted.offset, 0};
  return {wanted.offset, std::min(wanted.size_bytes, end - wanted.offset)};
}

FileRange whole_blocks(const FileRange& range, std::uint64_t block_bytes) {
  const std::uint64_t mask = block_bytes - 1;
  const std::uint64_t begin = (range.offset + mask) & ~mask;
  const std::uint64_t end = (range.offset + range.size_bytes) & ~mask;
  return {begin, end > begin ? end - begin : 0};
}

bool may_take_vendor(const Run& run, SpaceKind space) {
  return run.cold == ColdWay::nvfs || run.route == Route::nvfs ||
         (run.route == Route::p2pdma && space == SpaceKind::cuda);
}

void add_run(Plan& plan, const Run& run) {
  if (run.file.size_bytes == 0 || plan.run_count == run_limit) return;
  plan.runs[plan.run_count++] = run;
}

void add_with_edges(Plan& plan, const FileRange& range, const Run& middle, Run edge) {
  const std::uint64_t middle_end = middle.file.offset + middle.file.size_bytes;
  edge.reason = Reason::edge_block;
  edge.file = {range.offset, middle.file.offset - range.offset};
  add_run(plan, edge);
  add_run(plan, middle);
  edge.file = {middle_end, range.offset + range.size_bytes - middle_end};
  add_run(plan, edge);
}

Run staged_run(const Plan& plan, Reason reason, const FileRange& range) {
  // A page of the pinned bytes is not the ring's.
  const std::uint64_t ring_bytes = std::bit_floor(settings_of(plan).pinned_bytes.value - 1);
  const std::uint64_t piece_bytes =
      std::clamp<std::uint64_t>(ring_bytes, smallest_piece_bytes, staged_segment_bytes);
  return {Route::staged, reason, range, piece_bytes};
}

Run buffered_run(Reason reason, const FileRange& range) {
  return {Route::buffered, reason, range, buffered_segment_bytes};
}

void refuse_device(Plan& plan, Reason reason) {
  plan.refused.fill(reason);
  plan.refused[index(Route::direct_host)] = Reason::space_is_device;
  plan.refused[index(Route::buffered)] = Reason::space_is_device;
  fail(plan, reason);
}

void fail(Plan& plan, Reason reason) {
  plan.failure = reason;
  plan.runs = {};
  plan.run_count = 0;
  for (Reason& refusal : plan.refused) {
    if (refusal == Reason::none) refusal = reason;
  }
}

void clear_refusals_of_used(Plan& plan) {
  for (std::size_t i = 0; i < plan.run_count; ++i) {
    plan.refused[index(plan.runs[i].route)] = Reason::none;
  }
}

const FileFacts& file_of(const Plan& plan) { return value_or_default(plan.file); }
const MachineFacts& machine_of(const Plan& plan) { return value_or_default(plan.machine); }
const Settings& settings_of(const Plan& plan) { return value_or_default(plan.settings); }

}  // namespace straightway::plan
