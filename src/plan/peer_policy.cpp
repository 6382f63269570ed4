#include "plan/peer_policy.hpp"

#include <utility>

#include "plan/direct_paths.hpp"
#include "plan/runs.hpp"

namespace straightway::plan {
namespace {

// Other file systems copy, checksum or compress on the way: O_DIRECT succeeds there, and no drive
// touches the memory. Of an overlay the layers were looked at.
bool hands_memory_on(const FileFacts& file, const PeerFacts& peer) {
  if (file.filesystem == "overlay") return peer.storage != PeerStorage::unknown;
  return file.is_block_device || file.filesystem == "ext4" || file.filesystem == "xfs";
}

Reason storage_refusal(const FileFacts& file, const PeerFacts& peer) {
  const bool overlay = file.filesystem == "overlay";
  const bool has_device = overlay ? peer.storage != PeerStorage::unknown : !file.device.empty();
  if (file.is_network || !has_device) return Reason::no_block_device;
  if (peer.storage == PeerStorage::refuses || !hands_memory_on(file, peer)) {
    return Reason::no_peer_memory;
  }
  return file.direct_offset_align_bytes == 0 ? Reason::no_direct_io : Reason::none;
}

PeerTrial trial_of(const Plan& plan, const PeerFacts& peer) {
  return plan.request.direction == Direction::read ? peer.read_trial : peer.write_trial;
}

Reason trial_refusal(PeerTrial trial) {
  switch (trial) {
    case PeerTrial::refused:
      return Reason::peer_refused;
    case PeerTrial::data_lost:
      return Reason::peer_data_lost;
    case PeerTrial::impossible:
      return Reason::peer_not_tried;
    default:
      return Reason::none;
  }
}

FileRange middle_of(const Plan& plan) {
  const std::uint32_t block = direct_block_bytes(file_of(plan), machine_of(plan));
  return block == 0 ? FileRange{} : whole_blocks(reachable(plan.request), block);
}

Reason shape_refusal(const Plan& plan) {
  const FileFacts& file = file_of(plan);
  if (direct_block_bytes(file, machine_of(plan)) == 0) return Reason::no_direct_io;
  const FileRange middle = middle_of(plan);
  if (middle.size_bytes == 0) return Reason::request_too_small;
  const std::uint64_t align = file.direct_memory_align_bytes != 0 ? file.direct_memory_align_bytes
                                                                  : file.direct_offset_align_bytes;
  const std::uint64_t address = plan.request.memory.address;
  const bool fits =
      address == 0 || (address + (middle.offset - plan.request.file.offset)) % align == 0;
  return fits ? Reason::none : Reason::memory_misaligned;
}

void add_direct(Plan& plan) {
  const std::uint32_t block = direct_block_bytes(file_of(plan), machine_of(plan));
  const bool tried = trial_of(plan, *plan.peer) == PeerTrial::passed;
  const Run middle{Route::p2pdma,   tried ? Reason::peer_direct : Reason::peer_untried,
                   middle_of(plan), direct_segment_bytes,
                   block,           true};
  const FileRange range = reachable(plan.request);
  add_with_edges(plan, range, middle, buffered_run(Reason::edge_block, range));
}

void refuse_others(Plan& plan, Policy policy) {
  plan.refused.fill(Reason::space_is_device);
  const Reason nvfs = direct_refusal(Route::nvfs, file_of(plan), machine_of(plan));
  plan.refused[index(Route::nvfs)] = nvfs == Reason::none ? Reason::route_not_built : nvfs;
  plan.refused[index(Route::pinned_cache)] = Reason::not_pinned;
  const bool must = policy == Policy::direct;
  plan.refused[index(Route::staged)] = must ? Reason::policy_forbids : Reason::peer_needs_no_ring;
  plan.refused[index(Route::buffered)] = must ? Reason::policy_forbids : Reason::not_preferred;
}

// The file ends inside the first block: what is left of the request is an edge.
bool ends_in_first_block(const Plan& plan, Reason refusal) {
  return refusal == Reason::request_too_small &&
         reachable(plan.request).size_bytes < plan.request.file.size_bytes;
}

}  // namespace

Reason peer_refusal(const Plan& plan) {
  static const PeerFacts nothing_known;
  const PeerFacts& peer = plan.peer ? *plan.peer : nothing_known;
  if (const Reason reason = kernel_refusal(machine_of(plan)); reason != Reason::none) return reason;
  if (!peer.published) return Reason::not_published;
  if (const Reason reason = storage_refusal(file_of(plan), peer); reason != Reason::none) {
    return reason;
  }
  if (const Reason reason = trial_refusal(trial_of(plan, peer)); reason != Reason::none) {
    return reason;
  }
  const bool holes = peer.holes && plan.request.direction == Direction::read;
  return holes ? Reason::peer_holes : shape_refusal(plan);
}

void peer_policy(Plan& plan) {
  const Settings& settings = settings_of(plan);
  const FileRange range = reachable(plan.request);
  if (range.size_bytes == 0) return;
  const Policy policy = settings.policy.value;
  refuse_others(plan, policy);
  Reason& refused = plan.refused[index(Route::p2pdma)];
  refused = peer_refusal(plan);
  if (policy == Policy::direct && refused != Reason::none && !ends_in_first_block(plan, refused)) {
    return fail(plan, refused);
  }
  // To be kept in the page cache, the bytes must pass through it.
  const bool kept = settings.cache.value == Cache::keep && policy != Policy::direct;
  if (refused == Reason::none && kept) refused = Reason::not_preferred;
  if (policy == Policy::staged) refused = Reason::policy_forbids;
  if (refused == Reason::none) {
    add_direct(plan);
  } else {
    Reason reason = Reason::peer_copied;
    if (policy == Policy::staged) reason = Reason::policy_staged;
    if (policy == Policy::direct) reason = Reason::edge_block;
    add_run(plan, buffered_run(reason, range));
  }
  clear_refusals_of_used(plan);
}

}  // namespace straightway::plan
