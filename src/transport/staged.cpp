#include "transport/staged.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

namespace straightway::transport {
namespace {

// Two copies keep the engine busy; three measured no better, one 6 % worse.
constexpr std::uint64_t copies_in_flight_limit = 2;
constexpr std::uint64_t run_limit_bytes = std::uint64_t{16} << 20;
constexpr std::uint64_t poll_interval_ns = 50'000;

}  // namespace

Staged::Staged(std::unique_ptr<Transport> host, std::unique_ptr<memory::Pinned> pinned,
               std::unique_ptr<memory::Lane> lane)
    : host_(std::move(host)),
      pinned_(std::move(pinned)),
      lane_(std::move(lane)),
      slots_(std::max<std::size_t>(1, pinned_->size_bytes() / staged_piece_bytes)) {
  capabilities_ = host_->capabilities();
  capabilities_.name = "staged";
  capabilities_.space = SpaceKind::cuda;
  capabilities_.largest_segment_bytes = std::min(staged_piece_bytes, pinned_->size_bytes());
  capabilities_.depth = static_cast<std::uint32_t>(slots_.size());
  capabilities_.takes_envelopes = true;
  capabilities_.pinned_bytes = pinned_->size_bytes();
  capabilities_.poll_interval_ns = poll_interval_ns;
}

Staged::~Staged() {
  std::array<Completion, 16> dropped;
  while (oldest_ < next_ || !done_.empty()) reap(dropped);
  // The lane waits for its copies, then the ring is unpinned.
  lane_.reset();
}

Result<Attachment> Staged::attach(const MemoryRange& memory) {
  return Attachment{nullptr, memory.address, memory.address};
}

std::byte* Staged::slot_memory(std::uint64_t position) const {
  return pinned_->data() + (position % slots_.size()) * staged_piece_bytes;
}

std::size_t Staged::submit(std::span<const Segment> segments) {
  std::size_t count = 0;
  while (count < segments.size() && next_ - oldest_ < slots_.size()) {
    auto& taken = slot(next_++);
    taken = {};
    taken.segment = segments[count++];
    taken.completion.cookie = taken.segment.cookie;
    taken.payload_at = taken.segment.file_offset - taken.segment.envelope_offset;
    taken.state =
        taken.segment.direction == Direction::read ? State::host_waits : State::copy_waits;
  }
  give_to_host();
  send_copies();
  return count;
}

std::size_t Staged::reap(std::span<Completion> completions) {
  take_from_host();
  take_finished_copies();
  send_copies();
  give_to_host();
  while (oldest_ < next_ && slot(oldest_).state == State::finished) {
    slot(oldest_++).state = State::free;
  }
  const auto count = std::min(completions.size(), done_.size());
  std::move(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count), completions.begin());
  done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

// The host transport sees the ring: envelopes, at the slots' addresses, with positions as cookies.
void Staged::give_to_host() {
  for (auto position = oldest_; position < next_; ++position) {
    auto& waiting = slot(position);
    if (waiting.state != State::host_waits) continue;
    Segment inner = waiting.segment;
    inner.cookie = position;
    inner.address = reinterpret_cast<std::uint64_t>(slot_memory(position));
    inner.file_offset = inner.envelope_offset;
    inner.size_bytes = inner.envelope_bytes;
    if (host_->submit({&inner, 1}) == 0) return;
    waiting.state = State::host_moves;
  }
}

void Staged::take_from_host() {
  std::array<Completion, 32> completions;
  std::size_t count = 0;
  do {
    count = host_->reap(completions);
    for (std::size_t i = 0; i < count; ++i) {
      host_done(slot(completions[i].cookie), completions[i]);
    }
  } while (count == completions.size());
}

// What the host moved of the envelope, as bytes of the payload.
void Staged::host_done(Slot& done, const Completion& completion) {
  done.completion.disk_bytes = completion.disk_bytes;
  done.completion.error = completion.error;
  const auto moved = completion.result;
  if (moved < 0) {
    done.completion.result = moved;
    return finish(done);
  }
  const auto past_head =
      std::max<std::int64_t>(moved - static_cast<std::int64_t>(done.payload_at), 0);
  done.completion.result =
      std::min<std::int64_t>(past_head, static_cast<std::int64_t>(done.segment.size_bytes));
  if (done.segment.direction == Direction::write || done.completion.result == 0) {
    return finish(done);
  }
  done.state = State::copy_waits;
}

void Staged::finish(Slot& done) {
  done.state = State::finished;
  done_.push_back(done.completion);
}

void Staged::take_finished_copies() {
  if (tickets_.empty()) return;
  const auto reached = lane_->poll();
  if (!reached) return fail_copies(reached.error());
  while (!tickets_.empty() && tickets_.front() <= *reached) tickets_.erase(tickets_.begin());
  for (auto position = oldest_; position < next_; ++position) {
    auto& copied = slot(position);
    if (copied.state != State::copying || copied.ticket > *reached) continue;
    if (copied.segment.direction == Direction::read) {
      finish(copied);
    } else {
      copied.state = State::host_waits;
    }
  }
}

// Bytes that the copy of this slot moves: what the host read, or all of a write.
static std::uint64_t copy_bytes(const Segment& segment, const Completion& completion) {
  return segment.direction == Direction::read ? static_cast<std::uint64_t>(completion.result)
                                              : segment.size_bytes;
}

// Whether this slot and the one before it can leave as one copy: both full, side by side in the
// ring and in device memory.
bool Staged::continues_run(std::uint64_t position) {
  const auto& before = slot(position - 1);
  const auto& here = slot(position);
  return position % slots_.size() != 0 && here.state == State::copy_waits &&
         here.segment.direction == before.segment.direction && here.payload_at == 0 &&
         before.payload_at + copy_bytes(before.segment, before.completion) == staged_piece_bytes &&
         here.segment.address ==
             before.segment.address + copy_bytes(before.segment, before.completion);
}

void Staged::send_copies() {
  auto position = oldest_;
  while (tickets_.size() < copies_in_flight_limit && position < next_) {
    const auto& here = slot(position);
    // A read that is still being filled holds back what is behind it, so that runs can grow.
    if (here.segment.direction == Direction::read &&
        (here.state == State::host_waits || here.state == State::host_moves)) {
      return;
    }
    if (here.state != State::copy_waits) {
      ++position;
      continue;
    }
    std::uint64_t count = 1;
    while (position + count < next_ && (count + 1) * staged_piece_bytes <= run_limit_bytes &&
           continues_run(position + count)) {
      ++count;
    }
    send_run(position, count);
    position += count;
  }
}

void Staged::send_run(std::uint64_t first, std::uint64_t count) {
  std::uint64_t size_bytes = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    size_bytes += copy_bytes(slot(first + i).segment, slot(first + i).completion);
  }
  auto& head = slot(first);
  if (broken_) return fail_copies(*broken_);
  const auto ticket = lane_->copy(head.segment.direction, head.segment.address,
                                  slot_memory(first) + head.payload_at, size_bytes);
  if (!ticket) return fail_copies(ticket.error());
  for (std::uint64_t i = 0; i < count; ++i) {
    slot(first + i).state = State::copying;
    slot(first + i).ticket = *ticket;
  }
  tickets_.push_back(*ticket);
}

// A lane's error is sticky and nothing is in flight on it: every copy that runs or waits failed.
void Staged::fail_copies(const Error& error) {
  broken_ = std::make_shared<const Error>(error);
  tickets_.clear();
  for (auto position = oldest_; position < next_; ++position) {
    auto& failed = slot(position);
    if (failed.state != State::copying && failed.state != State::copy_waits) continue;
    failed.completion.result = -EIO;
    failed.completion.error = broken_;
    finish(failed);
  }
}

}  // namespace straightway::transport
