#include "transport/ring.hpp"

#include <algorithm>

namespace straightway::transport {
namespace {

constexpr std::uint64_t page_bytes = 4096;

}  // namespace

std::optional<std::uint64_t> Ring::take(std::uint64_t size_bytes, std::uint64_t most_window_bytes) {
  reserve();
  if (taken_.empty()) {
    const auto first = std::min(first_window_, most_window_bytes);
    window_ = std::min(size_bytes_, std::max(first, from(0, size_bytes) + size_bytes));
    turn_ = window_;
    head_ = 0;
  }
  const auto at = place(size_bytes);
  if (!at) return {};
  taken_.push_back(*at);
  head_ = std::min((*at + size_bytes + page_bytes - 1) & ~(page_bytes - 1), size_bytes_);
  return at;
}

// The first place at or behind `at` that does not cross the edge.
std::uint64_t Ring::from(std::uint64_t at, std::uint64_t size_bytes) const {
  return at < edge_ && size_bytes > edge_ - at ? edge_ : at;
}

std::optional<std::uint64_t> Ring::place(std::uint64_t size_bytes) {
  const auto fits = [&](std::uint64_t at, std::uint64_t end) {
    return at <= end && size_bytes <= end - at;
  };
  const auto next = from(head_, size_bytes);
  const bool wrapped = !taken_.empty() && head_ <= taken_.front();
  if (wrapped) {
    if (fits(next, taken_.front())) return next;
    return {};
  }
  if (fits(next, std::max(turn_, window_))) {
    turn_ = std::max(turn_, window_);
    return next;
  }
  const auto first = from(0, size_bytes);
  if (taken_.empty() || !fits(first, taken_.front())) return {};
  turn_ = window_;
  return first;
}

void Ring::give_back() { taken_.pop_front(); }

void Ring::widen() { window_ = std::min(size_bytes_, window_ * 2); }

void Ring::grow(std::uint64_t more_bytes) {
  edge_ = size_bytes_;
  size_bytes_ += more_bytes;
}

}  // namespace straightway::transport
