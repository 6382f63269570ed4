#pragma once
// What the two layers share when they cut a request, and what one asks of the other.

#include <cstdint>

#include "straightway/plan.hpp"

namespace straightway::plan {

// a / b rounded up, b > 0; it cannot overflow.
inline std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

// Pieces of piece_bytes (> 0), the last takes what is left.
Cut even_cut(const FileRange& range, std::uint64_t piece_bytes);

// The parts that the cuFile layer makes of one of its requests.
Cut cufile_parts(const FileRange& request, SpaceKind space, bool registered,
                 const CufileSettings& settings);

// Why the cuFile layer does not register this file: refused_compat; none: it does.
Reason cufile_refusal(const Plan& plan);

}  // namespace straightway::plan
