#include "api/peer_call.hpp"

#include <algorithm>
#include <utility>

#include "plan/planner.hpp"

namespace straightway {
Result<void> find_peer(CallRange& range) {
  auto found = range.file->engine->peer_mappings().find(
      reinterpret_cast<std::uint64_t>(range.memory.address), range.size_bytes);
  if (!found) {
    auto error = found.error();
    error.path = range.file->facts->path;
    return error;
  }
  range.peer = std::move(*found);
  return {};
}

bool may_be_peer(const CallRange& range) {
  const auto address = reinterpret_cast<std::uint64_t>(range.memory.address);
  const auto found = range.file->engine->peer_mappings().find(address, range.size_bytes);
  return !found || *found;
}

MemoryRange peer_range(const CallRange& range) {
  return {SpaceKind::peer, -1, reinterpret_cast<std::uint64_t>(range.memory.address),
          range.size_bytes};
}

std::shared_ptr<const PeerFacts> peer_facts(const CallRange& range) {
  auto& file = *range.file;
  return file.engine->peer_ways().facts(file.storage(), file.facts->filesystem,
                                        range.peer->device());
}

void try_peer(Plan& plan, const CallRange& range, const os::FileStamp& stamp) {
  const auto* run = peer_run(plan);
  if (run == nullptr) return;
  const auto ref = range.file->ref(true);
  if (ref.direct_fd < 0) return;  // secure_direct says why
  auto& engine = *range.file->engine;
  const bool may_have = plan.request.direction == Direction::read && !plan.file->is_block_device;
  const bool holes = may_have && engine.peer_ways().has_holes(stamp, ref.direct_fd, run->file);
  auto learned = plan.peer;
  if (holes) {
    auto here = *plan.peer;
    here.holes = true;
    learned = std::make_shared<const PeerFacts>(std::move(here));
  } else if (run->reason == Reason::peer_untried) {
    learned = engine.peer_ways().attempt(plan, range.file->storage(), ref, engine.syscalls());
  }
  if (learned == plan.peer) return;
  plan =
      plan::make_plan(plan.request, {plan.file, plan.machine, learned, {}, false}, plan.settings);
}

void learn_of_peers(const std::vector<CallRange>& ranges, const std::vector<Plan>& plans,
                    const Receipt& receipt, const std::optional<Error>& error) {
  const bool fell_back = receipt.refused[index(Route::p2pdma)] == Reason::fell_back;
  const bool refused = error && error->kind == ErrorKind::route_refused;
  if (!fell_back && !refused) return;
  const auto code = fell_back ? receipt.fallback_code : error->code;
  for (std::size_t i = 0; i < ranges.size() && code != 0; ++i) {
    if (!ranges[i].peer || peer_run(plans[i]) == nullptr) continue;
    ranges[i].file->engine->peer_ways().learn_refusal(
        ranges[i].file->storage(), ranges[i].peer->device(), receipt.direction, code);
  }
}

void judge_peers(const std::vector<Plan>& plans, Receipt& receipt) {
  auto& share = receipt.routes[index(Route::p2pdma)];
  const bool tried = std::all_of(plans.begin(), plans.end(), [](const Plan& plan) {
    const auto* run = peer_run(plan);
    return run == nullptr || run->reason == Reason::peer_direct;
  });
  if (share.bytes == 0 || !receipt.peer || !tried || receipt.direction == Direction::write ||
      !receipt.disk_measured || receipt.disk_bytes < share.bytes) {
    return;
  }
  share.evidence = {EvidenceKind::observed, Witness::trial, Scope::request};
}

}  // namespace straightway
