#pragma once
// How long a transfer took, the one definition for text, JSON and the ledger.

#include <cstdint>

#include "straightway/receipt.hpp"

namespace straightway::receipt {

// From the call to the end; 0 where the times do not say.
constexpr std::uint64_t duration_ns(const Times& times) {
  const std::uint64_t begin = times.queued_ns != 0 ? times.queued_ns : times.started_ns;
  return begin != 0 && times.done_ns > begin ? times.done_ns - begin : 0;
}

}  // namespace straightway::receipt
