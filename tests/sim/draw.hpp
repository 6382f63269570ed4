#pragma once
// Draws what a seed moves: files, legs and their runs, faults, and when somebody interferes.

#include <vector>

#include "drive/transfer.hpp"
#include "tests/sim/world.hpp"

namespace straightway::sim {

// Somebody interferes with one transfer; UINT64_MAX: never.
struct Interference {
  std::uint64_t cancel_ns = UINT64_MAX;
  std::uint64_t deadline_ns = UINT64_MAX;
};

struct Drawn {
  std::vector<drive::TransferSpec> specs;  // legs in the order of World::legs
  std::vector<Interference> interferences;
  std::uint64_t shrink_ns = UINT64_MAX;  // when a file is truncated
};

Drawn draw(World& world);

}  // namespace straightway::sim
