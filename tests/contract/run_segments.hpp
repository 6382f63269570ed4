#pragma once
// Runs segments through a transport the way drive/ does, checking the laws that hold for every run.

#include <cstdint>
#include <map>
#include <vector>

#include "tests/contract/rigs.hpp"

namespace straightway::contract {

struct RunOptions {
  std::size_t offered = 1000;  // segments offered to a submit at most
  std::size_t reaped = 32;     // completions asked of a reap at most
};

// Returns each segment's completion by its cookie; cookies must differ. Fails the test where a law
// is broken: more in flight than the depth, a completion for nothing, one too many or too few.
std::map<std::uint64_t, transport::Completion> run_segments(
    Rig& rig, const std::vector<transport::Segment>& segments, const RunOptions& options = {});

}  // namespace straightway::contract
