#include "straightway/plan.hpp"

#include <algorithm>
#include <bit>

#include "plan/cut.hpp"
#include "plan/direct_paths.hpp"
#include "plan/peer_policy.hpp"
#include "plan/planner.hpp"
#include "plan/runs.hpp"

namespace straightway {
namespace {

template <class T>
bool same_value(const std::shared_ptr<const T>& a, const std::shared_ptr<const T>& b) {
  if (a == b) return true;
  return a && b && *a == *b;
}

std::uint64_t align_down(std::uint64_t value, std::uint64_t align) { return value & ~(align - 1); }

// Of a group, or of what the last one has of it.
std::uint64_t segments_of_group(const Run& run, std::uint64_t size_bytes) {
  return std::min(run.group_segments, plan::divide_up(size_bytes, run.segment_bytes));
}

FileRange grouped_segment(const Run& run, std::uint64_t i) {
  const std::uint64_t group_offset = i / run.group_segments * run.group_bytes;
  const std::uint64_t size_bytes = std::min(run.group_bytes, run.file.size_bytes - group_offset);
  const std::uint64_t in_group = i % run.group_segments;
  const std::uint64_t before = in_group * run.segment_bytes;
  const bool last = in_group + 1 == segments_of_group(run, size_bytes);
  return {run.file.offset + group_offset + before, last ? size_bytes - before : run.segment_bytes};
}

}  // namespace

FileRange Cut::piece(std::uint64_t i) const {
  const std::uint64_t before = i * piece_bytes;
  return {offset + before, i + 1 < count ? piece_bytes : size_bytes - before};
}

std::uint64_t segment_count(const Run& run) {
  if (run.file.size_bytes == 0) return 0;
  if (run.group_bytes != 0) {
    const std::uint64_t whole = (run.file.size_bytes - 1) / run.group_bytes;
    return whole * run.group_segments +
           segments_of_group(run, run.file.size_bytes - whole * run.group_bytes);
  }
  const std::uint64_t last_byte = run.file.offset + run.file.size_bytes - 1;
  return last_byte / run.segment_bytes - run.file.offset / run.segment_bytes + 1;
}

PlannedSegment segment(const Run& run, std::uint64_t i) {
  if (run.group_bytes != 0) {
    const FileRange whole = grouped_segment(run, i);  // groups are cut in whole blocks
    return {whole, whole};
  }
  const std::uint64_t run_end = run.file.offset + run.file.size_bytes;
  const std::uint64_t cell = align_down(run.file.offset, run.segment_bytes) + i * run.segment_bytes;
  const std::uint64_t begin = std::max(run.file.offset, cell);
  const std::uint64_t end = std::min(run_end, cell + run.segment_bytes);
  const std::uint64_t align = run.align_bytes;
  const std::uint64_t outer_begin = align_down(begin, align);
  const std::uint64_t outer_end = align_down(end + align - 1, align);
  return {{begin, end - begin}, {outer_begin, outer_end - outer_begin}};
}

bool Plan::operator==(const Plan& other) const {
  return request == other.request && front == other.front && cufile == other.cufile &&
         run_count == other.run_count && runs == other.runs && refused == other.refused &&
         failure == other.failure && first_window == other.first_window &&
         pin_bytes == other.pin_bytes && same_value(file, other.file) &&
         same_value(machine, other.machine) && same_value(settings, other.settings) &&
         same_value(peer, other.peer);
}

namespace plan {
namespace {

// The reason of the layer that chose POSIX, or cuFile's for its way.
Reason layer_reason(const Plan& plan) {
  return plan.cufile.used ? plan.cufile.reason : plan.front.reason;
}

// A layer that keeps a request off a direct route is the reason why that route is not taken.
void refuse_for_layers(Plan& plan, Reason chosen) {
  if (plan.request.memory.space == SpaceKind::host) {
    const bool direct_io = direct_block_bytes(file_of(plan), machine_of(plan)) != 0;
    plan.refused.fill(Reason::space_is_host);
    plan.refused[index(Route::direct_host)] =
        direct_io ? Reason::not_preferred : Reason::no_direct_io;
    plan.refused[index(Route::buffered)] = Reason::not_preferred;
    return;
  }
  plan.refused.fill(Reason::space_is_device);
  for (const Route route : {Route::nvfs, Route::p2pdma}) {
    const Reason lacking = direct_refusal(route, file_of(plan), machine_of(plan));
    const Reason kept_off = chosen == Reason::direct_available ? Reason::not_preferred : chosen;
    plan.refused[index(route)] = lacking != Reason::none ? lacking : kept_off;
  }
  plan.refused[index(Route::pinned_cache)] = Reason::not_pinned;
  plan.refused[index(Route::staged)] = Reason::not_preferred;
}

Route route_of(const CufileDecision& cufile) {
  if (cufile.counters.nvfs > 0) return Route::nvfs;
  return cufile.counters.p2pdma > 0 ? Route::p2pdma : Route::staged;
}

// What one call of the vendor's library is given: a part, whole; where the library cuts by itself,
// a request of this layer, whole. Tasks of an odd size end inside blocks, where calls cannot.
void cut_into_calls(Run& run, const Plan& plan) {
  constexpr std::uint64_t largest_call_bytes = std::uint64_t{1} << 30;
  const Cut& parts = plan.cufile.parts;
  const std::uint64_t block = run.align_bytes;
  run.segment_bytes =
      std::bit_floor(std::clamp<std::uint64_t>(parts.piece_bytes, block, largest_call_bytes));
  const bool many = plan.front.used && plan.front.tasks.count > 1;
  const std::uint64_t request = many ? plan.front.tasks.piece_bytes : run.file.size_bytes;
  if (request % block != 0) return;
  const bool whole = machine_of(plan).vendor_cuts;
  const std::uint64_t wanted = whole ? request : divide_up(parts.piece_bytes, block) * block;
  run.group_bytes = request;
  run.segment_bytes = std::min(wanted, largest_call_bytes);
  const std::uint64_t all = divide_up(request, run.segment_bytes);
  run.group_segments = whole ? all : std::min(parts.count, all);
  const std::uint64_t rest = request - (run.group_segments - 1) * run.segment_bytes;
  if (rest > largest_call_bytes) run.group_segments = all;
}

void add_layered_runs(Plan& plan, const FileRange& range, Reason reason) {
  if (plan.request.memory.space == SpaceKind::host) {
    return add_run(plan, buffered_run(reason, range));
  }
  const Route route = route_of(plan.cufile);
  const std::uint32_t block = direct_block_bytes(file_of(plan), machine_of(plan));
  const FileRange middle = block == 0 ? FileRange{} : whole_blocks(range, block);
  const Run staged = staged_run(plan, reason, range);
  if (route == Route::staged) return add_run(plan, staged);
  if (middle.size_bytes == 0) {
    plan.refused[index(route)] = Reason::request_too_small;
    return add_run(plan, staged_run(plan, Reason::edge_block, range));
  }
  Run direct{route, reason, middle, 0, block, true};
  cut_into_calls(direct, plan);
  add_with_edges(plan, range, direct, staged);
}

// The KvikIO and cuFile doors: the layers decide, then their decision becomes runs.
void layered_policy(Plan& plan) {
  const bool device = plan.request.memory.space == SpaceKind::cuda;
  if (plan.request.door == Door::kvikio) front_layer(plan);
  if (plan.request.door == Door::cufile || plan.front.to_cufile) cufile_layer(plan);
  const FileRange range = reachable(plan.request);
  if (plan.failure == Reason::none && range.size_bytes == 0) return;
  const Reason reason = layer_reason(plan);
  refuse_for_layers(plan, reason);
  if (device) {
    const Reason no_device = device_refusal(plan.request.memory.device, machine_of(plan));
    if (no_device != Reason::none) return refuse_device(plan, no_device);
  }
  if (plan.failure != Reason::none) {
    plan.refused[index(device ? Route::staged : Route::buffered)] = plan.failure;
    return fail(plan, plan.failure);
  }
  add_layered_runs(plan, range, reason);
  clear_refusals_of_used(plan);
}

bool beyond_any_file(const Request& request) {
  if (request.direction == Direction::read || request.file.size_bytes == 0) return false;
  return request.file.offset > largest_end ||
         request.file.size_bytes > largest_end - request.file.offset;
}

}  // namespace

Plan make_plan(const Request& request, const Facts& facts,
               const std::shared_ptr<const Settings>& settings) {
  Plan plan;
  plan.request = request;
  plan.file = facts.file;
  plan.machine = facts.machine;
  plan.settings = settings;
  plan.peer = facts.peer;
  for (const auto& range : facts.pinned) plan.pin_bytes += range.size_bytes;
  if (beyond_any_file(request)) {
    fail(plan, Reason::range_too_large);
  } else if (request.memory.space == SpaceKind::peer) {
    peer_policy(plan);
  } else if (request.door == Door::straightway) {
    auto_policy(plan, facts);
  } else {
    layered_policy(plan);
  }
  return plan;
}

}  // namespace plan
}  // namespace straightway
