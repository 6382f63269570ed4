#pragma once
// After a transfer is drained: what it says against what the simulated world knows.

#include <cstddef>
#include <cstdint>

#include "drive/transfer.hpp"
#include "tests/sim/world.hpp"

namespace straightway::sim {

void audit(World& world, std::size_t number, const drive::Transfer& transfer, bool cancelled,
           std::uint64_t deadline_ns);

}  // namespace straightway::sim
