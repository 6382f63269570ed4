#include "tests/sim/simulated_transport.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>

namespace straightway::sim {

using transport::Attachment;
using transport::Completion;
using transport::FileRef;
using transport::Segment;

namespace {

// Tokens that no other file or kind of descriptor has.
constexpr std::uint64_t buffered_token = 1000;
constexpr std::uint64_t direct_token = 2000;

}  // namespace

SimulatedTransport::SimulatedTransport(World& world, std::uint32_t depth, bool takes_envelopes,
                                       bool direct)
    : world_(world), direct_(direct) {
  capabilities_.name = "simulated";
  capabilities_.largest_segment_bytes = std::uint64_t{1} << 20;
  capabilities_.depth = depth;
  capabilities_.takes_envelopes = takes_envelopes;
}

Result<Attachment> SimulatedTransport::attach(const FileRef& file) {
  Attachment attachment;
  attachment.token = buffered_token + static_cast<std::uint64_t>(file.fd);
  attachment.direct_token = direct_token + static_cast<std::uint64_t>(file.fd);
  return attachment;
}

Result<Attachment> SimulatedTransport::attach(const MemoryRange& memory) {
  Attachment attachment;
  attachment.token = memory.address;
  return attachment;
}

std::size_t SimulatedTransport::leg_of(const Segment& segment) {
  for (std::size_t i = 0; i < world_.legs.size(); ++i) {
    const auto& leg = world_.legs[i].leg;
    if (segment.address >= leg.address &&
        segment.address + segment.size_bytes <= leg.address + leg.range.size_bytes) {
      return i;
    }
  }
  return world_.legs.size();
}

void SimulatedTransport::check_envelope(const Segment& segment, std::size_t leg) {
  const auto payload_end = segment.file_offset + segment.size_bytes;
  const auto envelope_end = segment.envelope_offset + segment.envelope_bytes;
  if (segment.envelope_offset > segment.file_offset || envelope_end < payload_end) {
    world_.broken("the envelope does not contain the payload");
  }
  const bool wider = segment.envelope_bytes != segment.size_bytes;
  if (wider && (!capabilities_.takes_envelopes || segment.direction == Direction::write)) {
    world_.broken("an envelope that the transport does not take");
  }
  if (!segment.direct_io) return;
  for (const auto& run : world_.legs[leg].leg.runs) {
    if (run.direct_io &&
        (segment.envelope_offset | segment.envelope_bytes) % run.align_bytes != 0) {
      world_.broken("a direct envelope that is not aligned");
    }
    if (run.cold == ColdWay::direct &&
        (segment.envelope_offset | segment.envelope_bytes) % run.cold_align_bytes != 0) {
      world_.broken("a direct envelope of a cold part that is not aligned");
    }
  }
}

void SimulatedTransport::check_cache(const Segment& segment) {
  const bool any = segment.dontcache || segment.trim;
  if (any && (segment.direct_io || segment.direction == Direction::write)) {
    world_.broken("a word about the page cache for what does not go through it");
  }
}

void SimulatedTransport::check(const Segment& segment, std::size_t leg) {
  if (leg == world_.legs.size()) return world_.broken("a segment outside all memory");
  const auto& account = world_.legs[leg];
  const auto& range = account.leg.range;
  const auto transfer = static_cast<std::uint32_t>(segment.cookie >> 32);
  if (transfer != account.transfer) world_.broken("a segment of another transfer's memory");
  if (world_.transfers[account.transfer].stopped) world_.broken("submitted after it stopped");
  if (segment.size_bytes == 0) world_.broken("an empty segment");
  if (segment.size_bytes > capabilities_.largest_segment_bytes) world_.broken("too large");
  if (segment.direction != world_.direction) world_.broken("the wrong direction");
  if (segment.file_offset - range.offset != segment.address - account.leg.address) {
    world_.broken("a segment whose memory is not the place of its file offset");
  }
  if (segment.direct_io != direct_) world_.broken("a segment for the other kind of descriptor");
  const auto token = (direct_ ? direct_token : buffered_token) + account.leg.file;
  if (segment.file != token) world_.broken("a segment with another file's token");
  check_envelope(segment, leg);
  check_cache(segment);
  for (const auto& other : in_flight_) {
    if (other.segment.cookie == segment.cookie) world_.broken("a cookie that is in flight");
    if (segment.address < other.segment.address + other.segment.size_bytes &&
        other.segment.address < segment.address + segment.size_bytes) {
      world_.broken("two segments in flight for the same bytes");
    }
  }
}

std::size_t SimulatedTransport::submit(std::span<const Segment> segments) {
  const auto room = capabilities_.depth - in_flight_.size();
  auto taken = std::min<std::size_t>(segments.size(), room);
  if (taken > 0 && world_.random.often(world_.faults.full)) taken = world_.random.below(taken);
  for (const auto& segment : segments.first(taken)) {
    const auto leg = leg_of(segment);
    check(segment, leg);
    if (!world_.violation.empty()) return taken;
    ++world_.transfers[world_.legs[leg].transfer].in_flight;
    world_.note(segment.cookie ^ segment.file_offset << 8 ^ segment.size_bytes << 40);
    in_flight_.push_back({segment, leg, world_.now_ns + 1 + world_.random.below(500)});
  }
  return taken;
}

// Moves what this completion says it moved, and counts each byte.
std::uint64_t SimulatedTransport::move(const InFlight& done) {
  auto& account = world_.legs[done.leg];
  auto& file = world_.files[account.leg.file];
  const auto& segment = done.segment;
  auto count = segment.size_bytes;
  if (segment.direction == Direction::read) {
    const auto left = segment.file_offset < file.size_bytes ? file.size_bytes - segment.file_offset
                                                            : std::uint64_t{0};
    count = std::min(count, left);
  }
  if (count > 1 && world_.random.often(world_.faults.shortened)) {
    count = 1 + world_.random.below(count - 1);
  }
  const auto at = segment.address - account.leg.address;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (segment.direction == Direction::read) {
      account.memory[at + i] = file.bytes[segment.file_offset + i];
    } else {
      file.bytes[segment.file_offset + i] = account.memory[at + i];
    }
    ++account.moves[at + i];
  }
  return count;
}

std::int64_t SimulatedTransport::result_of(const InFlight& done, Completion& completion) {
  auto& random = world_.random;
  const auto& faults = world_.faults;
  auto& transfer = world_.transfers[world_.legs[done.leg].transfer];
  const bool write = done.segment.direction == Direction::write;
  if (random.often(faults.interrupted)) return -EINTR;
  if (random.often(faults.again)) return -EAGAIN;
  if (write && random.often(faults.nothing)) return 0;
  if (done.segment.direct_io && random.often(faults.direct_refused)) {
    transfer.unrecoverable |= !world_.may_fall_back;
    return random.below(2) == 0 ? -EINVAL : -EOPNOTSUPP;
  }
  if (done.segment.dontcache && random.often(faults.dontcache_refused)) return -EOPNOTSUPP;
  if (random.often(faults.failed)) {
    transfer.unrecoverable = true;
    return write && random.below(2) == 0 ? -ENOSPC : -EIO;
  }
  if (random.often(faults.device_failed)) {
    transfer.unrecoverable = true;
    Error error;
    error.kind = ErrorKind::device;
    error.origin = ErrorOrigin::cuda;
    error.code = 700;
    completion.error = std::make_shared<const Error>(error);
    return -EIO;
  }
  return static_cast<std::int64_t>(move(done));
}

Completion SimulatedTransport::complete(const InFlight& done) {
  auto& transfer = world_.transfers[world_.legs[done.leg].transfer];
  Completion completion;
  completion.cookie = done.segment.cookie;
  completion.result = result_of(done, completion);
  --transfer.in_flight;
  if (completion.result > 0) {
    transfer.reported_bytes += static_cast<std::uint64_t>(completion.result);
  }
  world_.note(completion.cookie + static_cast<std::uint64_t>(completion.result) * 31);
  return completion;
}

std::size_t SimulatedTransport::reap(std::span<Completion> completions) {
  std::size_t count = 0;
  while (count < completions.size()) {
    std::vector<std::size_t> due;
    for (std::size_t i = 0; i < in_flight_.size(); ++i) {
      if (in_flight_[i].due_ns <= world_.now_ns) due.push_back(i);
    }
    if (due.empty()) break;
    const auto chosen = due[world_.random.below(due.size())];
    const InFlight done = in_flight_[chosen];
    in_flight_.erase(in_flight_.begin() + static_cast<std::ptrdiff_t>(chosen));
    completions[count++] = complete(done);
  }
  return count;
}

std::uint64_t SimulatedTransport::next_due_ns() const {
  std::uint64_t next = UINT64_MAX;
  for (const auto& one : in_flight_) next = std::min(next, one.due_ns);
  return next;
}

}  // namespace straightway::sim
