#pragma once
// Peer memory: when a drive can reach it, and what is done where it cannot.

#include "straightway/plan.hpp"

namespace straightway::plan {

// Why the route p2pdma cannot serve peer memory; none: nothing known speaks against it.
Reason peer_refusal(const Plan& plan);

// Fills plan.runs, refused and failure, at every door: neither KvikIO nor cuFile knows this memory.
void peer_policy(Plan& plan);

}  // namespace straightway::plan
