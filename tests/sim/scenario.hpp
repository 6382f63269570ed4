#pragma once
// One seed: transfers are drawn, driven to their end over the simulated transports, and checked.

#include <cstdint>
#include <string>

namespace straightway::sim {

struct Outcome {
  std::string violation;  // empty: all is well
  std::uint64_t trace = 0;
  std::uint64_t steps = 0;
};

Outcome run_seed(std::uint64_t seed);

}  // namespace straightway::sim
