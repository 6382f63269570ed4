#pragma once
// What transports do that keep their results until they are reaped.

#include <algorithm>
#include <span>
#include <vector>

#include "transport/transport.hpp"

namespace straightway::transport {

// Takes the first completions out of done, as many as there is room for; how many.
inline std::size_t hand_out(std::vector<Completion>& done, std::span<Completion> room) {
  const auto count = std::min(room.size(), done.size());
  const auto last = done.begin() + static_cast<std::ptrdiff_t>(count);
  std::move(done.begin(), last, room.begin());
  done.erase(done.begin(), last);
  return count;
}

}  // namespace straightway::transport
