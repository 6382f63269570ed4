#include "transport/load.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "transport/move_now.hpp"

namespace straightway::transport {
namespace {

// To the host transport.
constexpr std::size_t given_at_once = 64;

// What the file's page cache is filled from stays in the processor's caches (measured: 4.7 GB/s
// through this, 3.4 through 32 MiB).
constexpr std::uint64_t write_window_bytes = std::uint64_t{4} << 20;
// Those that are read, and two that are being copied.
constexpr std::uint64_t direct_window_bytes = (most_direct_copiers + 2) * (std::uint64_t{1} << 20);

}  // namespace

std::uint64_t most_window_bytes(const Segment& segment) {
  if (segment.direct_io) return direct_window_bytes;
  return writes_to_cache(segment) ? write_window_bytes : UINT64_MAX;
}

bool writes_to_cache(const Segment& segment) {
  return segment.direction == Direction::write && !segment.direct_io;
}

std::int64_t payload_moved(const Segment& segment, std::int64_t envelope_moved) {
  const auto head = static_cast<std::int64_t>(segment.file_offset - segment.envelope_offset);
  return std::clamp<std::int64_t>(envelope_moved - head, 0,
                                  static_cast<std::int64_t>(segment.size_bytes));
}

void Load::reserve(std::size_t count) {
  segments.reserve(count);
  places.reserve(count);
  completions.reserve(count);
  extents.reserve(count);
}

void Load::begin(Direction which, std::uint64_t offset) {
  direction = which;
  at = offset;
  size_bytes = 0;
  ticket = 0;
  segments.clear();
  places.clear();
  completions.clear();
  extents.clear();
  state = which == Direction::read ? State::filling : State::copy_waits;
}

void Load::add(const Segment& segment) {
  const auto offset = at + size_bytes;
  segments.push_back(segment);
  places.push_back(offset);
  completions.push_back({.cookie = segment.cookie, .error = nullptr});
  size_bytes += segment.envelope_bytes;
  if (direction == Direction::write) add_extent({offset, segment.address, segment.size_bytes});
}

void Load::add_extent(const Extent& extent) {
  if (!extents.empty()) {
    auto& last = extents.back();
    if (last.at + last.size_bytes == extent.at &&
        last.address + last.size_bytes == extent.address) {
      last.size_bytes += extent.size_bytes;
      return;
    }
  }
  extents.push_back(extent);
}

Segment Load::host_segment(std::size_t index, std::byte* ring) const {
  Segment inner = segments[index];
  inner.address = reinterpret_cast<std::uint64_t>(ring + places[index]);
  inner.file_offset = inner.envelope_offset;
  inner.size_bytes = inner.envelope_bytes;
  return inner;
}

void Load::host_done(std::size_t index, const Completion& completion) {
  auto& mine = completions[index];
  mine.disk_bytes = completion.disk_bytes;
  mine.error = completion.error;
  mine.result = completion.result;
  if (completion.result <= 0) return;
  const auto& segment = segments[index];
  mine.result = payload_moved(segment, completion.result);
  if (direction == Direction::write || mine.result == 0) return;
  add_extent({places[index] + (segment.file_offset - segment.envelope_offset), segment.address,
              static_cast<std::uint64_t>(mine.result)});
}

void Load::move_by(Transport& host, std::byte* ring) {
  std::array<Segment, given_at_once> inner;  // on the stack: memory may be short
  std::array<Completion, given_at_once> moved;
  for (std::size_t first = 0; first < segments.size(); first += given_at_once) {
    const auto count = std::min(given_at_once, segments.size() - first);
    for (std::size_t i = 0; i < count; ++i) inner[i] = host_segment(first + i, ring);
    move_now(host, std::span(inner).first(count), std::span(moved).first(count));
    for (std::size_t i = 0; i < count; ++i) host_done(first + i, moved[i]);
  }
}

void Load::fail(const std::shared_ptr<const Error>& error) {
  for (auto& completion : completions) {
    if (completion.result < 0) continue;  // it failed before, for its own reason
    completion.result = -EIO;
    completion.error = error;
  }
}

bool Load::continues(const Load& before) const {
  if (extents.size() != 1 || before.extents.size() != 1 || direction != before.direction) {
    return false;
  }
  const auto& last = before.extents.front();
  return last.at + last.size_bytes == extents.front().at &&
         last.address + last.size_bytes == extents.front().address;
}

}  // namespace straightway::transport
