#pragma once
// How many copiers of a transport may work at this time, by what other programs leave them.

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>

namespace straightway::transport {

// Any thread may ask, and whoever made it may change it; null: no limit. At least 1.
using CopierLimit = std::shared_ptr<const std::atomic<std::uint32_t>>;

inline std::uint32_t copiers_now(const CopierLimit& limit) {
  return limit ? limit->load(std::memory_order_relaxed) : std::numeric_limits<std::uint32_t>::max();
}

}  // namespace straightway::transport
