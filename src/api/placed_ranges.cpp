#include "api/placed_ranges.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/planning.hpp"

namespace straightway {
namespace {

struct Place {
  Direction direction;
  const std::string& path;
  std::span<const PlacedRange> ranges;

  Error wrong(std::size_t i, std::string why, std::string advice) const {
    return {ErrorKind::invalid_argument,
            ErrorOrigin::straightway,
            0,
            std::string(to_string(direction)) + " range " + std::to_string(i) + " of",
            path,
            ranges[i].offset,
            std::move(why),
            std::move(advice)};
  }
  // Where a range's bytes arrive.
  std::uint64_t target(std::size_t i) const {
    return direction == Direction::read ? ranges[i].position : ranges[i].offset;
  }
  std::uint64_t target_end(std::size_t i) const { return target(i) + ranges[i].size_bytes; }
  Error overlap(std::size_t i, std::size_t j) const;
  bool in_order() const;
  Result<void> check_targets() const;
};

Error Place::overlap(std::size_t i, std::size_t j) const {
  const auto [first, second] = std::minmax(i, j);
  return wrong(second,
               std::string("it would fill bytes of the ") +
                   (direction == Direction::read ? "memory" : "file") + " that range " +
                   std::to_string(first) + " fills too",
               "give each range a place of its own");
}

// As most calls have them: each behind the one before.
bool Place::in_order() const {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].size_bytes == 0) continue;
    if (target(i) < end) return false;
    end = target_end(i);
  }
  return true;
}

// No two ranges with bytes share a target.
Result<void> Place::check_targets() const {
  if (in_order()) return {};
  std::vector<std::pair<std::uint64_t, std::size_t>> order;  // target and number
  order.reserve(ranges.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].size_bytes > 0) order.emplace_back(target(i), i);
  }
  std::sort(order.begin(), order.end());
  for (std::size_t k = 1; k < order.size(); ++k) {
    const auto before = order[k - 1].second;
    if (target_end(before) > order[k].first) return overlap(before, order[k].second);
  }
  return {};
}

}  // namespace

Result<void> check_placed(Direction direction, const std::string& path, const Memory& memory,
                          std::span<const PlacedRange> ranges) {
  const Place place{direction, path, ranges};
  const auto room_bytes = memory.address == nullptr ? 0 : memory.size_bytes;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto& range = ranges[i];
    if (!fits_a_file({range.offset, range.size_bytes})) {
      return place.wrong(i, "offset and size end beyond 2^63 - 1, or are negative",
                         "give an offset and a size within the file");
    }
    if (range.position > room_bytes || range.size_bytes > room_bytes - range.position) {
      return place.wrong(i,
                         std::to_string(range.size_bytes) + " bytes at position " +
                             std::to_string(range.position) + " do not lie within the memory of " +
                             std::to_string(room_bytes) + " bytes",
                         "give a position and a size within the memory");
    }
  }
  return place.check_targets();
}

}  // namespace straightway
