#pragma once
// What a call does about peer memory: find it, try the way to it, judge and remember what came of
// it.

#include <memory>
#include <optional>
#include <vector>

#include "api/call.hpp"

namespace straightway {

// Finds the peer memory that the range lies in, if any, and keeps it mapped with the range.
Result<void> find_peer(CallRange& range);
// Whether it lies there, or overlaps it.
bool may_be_peer(const CallRange& range);
// Of a range in peer memory: that, and what is known of the way there.
MemoryRange peer_range(const CallRange& range);
std::shared_ptr<const PeerFacts> peer_facts(const CallRange& range);
// Makes it the plan once its way to peer memory was tried; any other plan stays as it is. stamp: of
// the file, looked at for the plan.
void try_peer(Plan& plan, const CallRange& range, const os::FileStamp& stamp);
// What the kernel refused once is not tried again.
void learn_of_peers(const std::vector<CallRange>& ranges, const std::vector<Plan>& plans,
                    const Receipt& receipt, const std::optional<Error>& error);
// Storage DMA into peer memory is observed where the way was tried with poisoned data, and the
// storage was read for this request.
void judge_peers(const std::vector<Plan>& plans, Receipt& receipt);

}  // namespace straightway
