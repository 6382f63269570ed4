#include "transport/pinned_cache.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

namespace straightway::transport {
namespace {

constexpr std::uint32_t flights_limit = 256;
constexpr std::uint64_t flying_limit_bytes = 2 * pinned_segment_bytes;
constexpr std::uint64_t poll_interval_ns = 50'000;

}  // namespace

PinnedCache::PinnedCache(std::unique_ptr<memory::Lane> lane) : lane_(std::move(lane)) {
  capabilities_.name = "pinned-cache";
  capabilities_.space = SpaceKind::cuda;
  capabilities_.writes = false;
  capabilities_.largest_segment_bytes = pinned_segment_bytes;
  capabilities_.depth = flights_limit;
  capabilities_.poll_interval_ns = poll_interval_ns;
  flights_.reserve(flights_limit);
  done_.reserve(flights_limit);
}

PinnedCache::~PinnedCache() {
  lane_.reset();  // waits for its copies; only then may pages be let go
}

Result<Attachment> PinnedCache::attach(const FileRef& file) {
  if (!file.pins) {
    return Error{ErrorKind::unsupported,
                 ErrorOrigin::straightway,
                 0,
                 "attach a file",
                 "",
                 {},
                 "none of its pages were pinned",
                 "pin it first, or plan it as staged"};
  }
  return Attachment{file.pins, reinterpret_cast<std::uint64_t>(file.pins.get()), 0};
}

Result<Attachment> PinnedCache::attach(const MemoryRange& memory) {
  return Attachment{nullptr, memory.address, memory.address};
}

std::size_t PinnedCache::submit(std::span<const Segment> segments) {
  std::size_t count = 0;
  while (count < segments.size() && flights_.size() + done_.size() < flights_limit) {
    const auto& segment = segments[count];
    if (flying_bytes_ > 0 && flying_bytes_ + segment.size_bytes > flying_limit_bytes) break;
    start(segment);
    ++count;
  }
  return count;
}

// The pinned ranges that hold the segment, side by side, each of which stands its checks.
std::optional<std::vector<PinnedCache::Part>> PinnedCache::find_parts(const Segment& segment) {
  auto& pins = *reinterpret_cast<memory::FilePins*>(segment.file);
  std::vector<Part> parts;
  const auto end = segment.file_offset + segment.size_bytes;
  for (auto at = segment.file_offset; at < end;) {
    Part part;
    part.use = pins.use(at);
    if (!part.use) return {};
    const auto& range = part.use.range().range();
    part.range = {at, std::min(end, range.offset + range.size_bytes) - at};
    if (!part.use.ready(part.range)) return {};
    at += part.range.size_bytes;
    parts.push_back(std::move(part));
  }
  return parts;
}

void PinnedCache::start(const Segment& segment) {
  if (segment.direction != Direction::read || segment.direct_io) {
    return finish(segment, -EOPNOTSUPP);
  }
  if (capabilities_.broken) return finish(segment, -EIO, broken_);
  try {
    auto parts = find_parts(segment);
    if (!parts) return finish(segment, -ESTALE);
    copy_parts(segment, std::move(*parts));
  } catch (const std::bad_alloc&) {
    finish(segment, -ENOMEM);
  }
}

// From here on it is under way, and keeps its pages until its last copy is done.
void PinnedCache::copy_parts(const Segment& segment, std::vector<Part> parts) {
  flights_.push_back({segment, std::move(parts), 0, 0});
  flying_bytes_ += segment.size_bytes;
  auto& flight = flights_[flights_.size() - 1];
  if (flights_.size() > 1) flight.ticket = flights_[flights_.size() - 2].ticket;
  try {
    for (const auto& part : flight.parts) {
      const auto address = segment.address + (part.range.offset - segment.file_offset);
      const auto ticket = lane_->copy(
          Direction::read, address, part.use.range().at(part.range.offset), part.range.size_bytes);
      if (!ticket) return fail_flights(ticket.error());
      flight.ticket = *ticket;
    }
  } catch (const std::bad_alloc&) {
    flight.code = ENOMEM;
  }
}

std::size_t PinnedCache::reap(std::span<Completion> completions) {
  take_finished_copies();
  const auto count = std::min(completions.size(), done_.size());
  for (std::size_t i = 0; i < count; ++i) {
    completions[i] = std::move(done_.front());
    done_.pop_front();
  }
  return count;
}

// Where the lane finds no memory to say what is wrong, it says it at the next look.
void PinnedCache::take_finished_copies() try {
  if (flights_.empty()) return;
  const auto reached = lane_->poll();
  if (!reached) return fail_flights(reached.error());
  while (!flights_.empty() && flights_.front().ticket <= *reached) {
    land(flights_.front());
    flying_bytes_ -= flights_.front().segment.size_bytes;
    flights_.pop_front();
  }
} catch (const std::bad_alloc&) {
}

// The copy is over: it counts if the pages were the file's all the time.
void PinnedCache::land(Flight& flight) {
  const bool intact = std::ranges::all_of(
      flight.parts, [](const Part& part) { return part.use.intact(part.range); });
  flight.parts.clear();
  if (flight.code != 0) return finish(flight.segment, -flight.code);
  finish(flight.segment,
         intact ? static_cast<std::int64_t>(flight.segment.size_bytes) : std::int64_t{-ESTALE});
}

void PinnedCache::finish(const Segment& segment, std::int64_t result,
                         std::shared_ptr<const Error> error) {
  Completion completion;
  completion.cookie = segment.cookie;
  completion.result = result;
  completion.error = std::move(error);
  completion.disk_bytes = 0;  // the pages are in memory
  done_.push_back(std::move(completion));
}

// A lane's error is sticky, and nothing is in flight on it.
void PinnedCache::fail_flights(const Error& error) {
  capabilities_.broken = true;
  try {
    broken_ = std::make_shared<const Error>(error);
  } catch (const std::bad_alloc&) {  // then the errno has to do
  }
  for (; !flights_.empty(); flights_.pop_front()) {
    flights_.front().parts.clear();
    finish(flights_.front().segment, -EIO, broken_);
  }
  flying_bytes_ = 0;
}

Result<bool> copy_pinned(memory::FilePins& pins, memory::Desk& desk, const FileRange& range,
                         std::uint64_t device_address, std::optional<void*> stream) {
  const auto end = range.offset + range.size_bytes;
  for (auto at = range.offset; at < end;) {
    const auto use = pins.use(at);
    if (!use) return false;
    const auto& pinned = use.range().range();
    const FileRange part{at, std::min(end, pinned.offset + pinned.size_bytes) - at};
    if (!use.ready(part)) return false;
    const auto copied = desk.copy_held(device_address + (at - range.offset), use.range().at(at),
                                       part.size_bytes, stream);
    if (!copied) return copied.error();
    if (!use.intact(part)) return false;
    at += part.size_bytes;
  }
  return true;
}

}  // namespace straightway::transport
