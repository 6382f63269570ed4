#include "transport/staged.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <new>
#include <system_error>

#include "os/pause.hpp"
#include "os/signals_blocked.hpp"
#include "transport/hand_out.hpp"

namespace straightway::transport {
namespace {

// Two copies keep the engine busy; three measured no better, one 6 % worse.
constexpr std::size_t copies_in_flight_limit = 2;
constexpr std::uint64_t read_run_limit_bytes = std::uint64_t{16} << 20;
// Shorter, so that the file is written while the next run comes.
constexpr std::uint64_t write_run_limit_bytes = std::uint64_t{4} << 20;
constexpr std::uint32_t depth = 4096;
// Pieces for each copier: one that it fills, and those that wait for a copy or are being copied.
constexpr std::uint64_t pieces_per_copier = 3;
constexpr std::uint64_t largest_first_window_bytes = std::uint64_t{32} << 20;
// A copier that must wait looks again after this; a run of 16 MiB takes 290 us on a fast link.
constexpr auto nap = std::chrono::microseconds(50);
constexpr unsigned long timer_slack_ns = 10'000;
// Ten fill a fast link from large folios (measured), more are needed for 4 KiB pages.
constexpr std::uint32_t first_copiers = 10;
constexpr std::uint32_t starved_before_one_more = 16;
// Of small segments, up to so many bytes: where the pump is slower than the copiers, the queue is
// short, and shares of it would become ever smaller.
constexpr std::size_t least_segments = 16;
constexpr std::uint64_t least_load_bytes = std::uint64_t{256} << 10;
// By the one who watches the copies when nothing else is left.
constexpr auto looks_before_nap = std::chrono::microseconds(20);

std::uint64_t first_window(std::uint64_t ring_bytes, std::uint32_t copiers) {
  return std::min(
      {ring_bytes, largest_first_window_bytes, copiers * pieces_per_copier * staged_piece_bytes});
}

// The lock is held for a microsecond or less; sleeping for it would take fifty.
void lock_soon(std::unique_lock<std::mutex>& lock) {
  for (int i = 0; i < 20; ++i) {
    if (lock.try_lock()) return;
    os::pause_briefly();
  }
  lock.lock();
}

}  // namespace

Staged::Staged(Make make, std::uint32_t copiers, std::unique_ptr<memory::Pinned> pinned,
               std::unique_ptr<memory::Lane> lane, Wake& wake, Grow grow, CopierLimit limit)
    : make_(std::move(make)),
      limit_(std::move(limit)),
      wake_(wake),
      prototype_(make_()),
      pinned_(std::move(pinned)),
      lane_(std::move(lane)),
      ring_(pinned_->size_bytes(), first_window(pinned_->size_bytes(), copiers)),
      grow_(std::move(grow)),
      most_copiers_(std::max(copiers, 1U)),
      copiers_wanted_(std::min(most_copiers_, first_copiers)) {
  capabilities_ = prototype_->capabilities();
  capabilities_.name = "staged";
  capabilities_.space = SpaceKind::cuda;
  capabilities_.largest_segment_bytes = pinned_->size_bytes();
  capabilities_.depth = depth;
  capabilities_.takes_envelopes = true;
  capabilities_.threads = copiers_wanted_;
  capabilities_.pinned_bytes = pinned_->size_bytes();
  copiers_.reserve(most_copiers_);
  queue_.reserve(depth);
  done_.reserve(depth);
  tickets_.reserve(copies_in_flight_limit);
}

Staged::~Staged() {
  std::array<Completion, 16> dropped;
  while (accepted_ > 0) {
    if (reap(dropped) == 0) wake_.wait(1'000'000);
  }
  for (auto& copier : copiers_) copier.request_stop();
  copiers_.clear();  // joins
  // The lane waits for its copies, then the ring is unpinned.
  lane_.reset();
}

Result<Attachment> Staged::attach(const MemoryRange& memory) {
  return Attachment{nullptr, memory.address, memory.address};
}

// Takes what fills the ring twice: one turn in the ring, one waiting, so that no copier runs dry.
std::size_t Staged::submit(std::span<const Segment> segments) {
  std::size_t count = 0;
  Lock lock(mutex_, std::defer_lock);
  lock_soon(lock);
  fresh_ |= queue_.empty() && loads_.empty();
  while (count < segments.size() && accepted_ < depth &&
         (queue_.empty() || queue_bytes_ < ring_.size_bytes())) {
    const auto& segment = segments[count++];
    ++accepted_;
    if (segment.envelope_bytes > ring_.size_bytes()) {
      done_.push_back({.cookie = segment.cookie, .result = -EINVAL, .error = nullptr});
      continue;
    }
    queue_bytes_ += segment.envelope_bytes;
    queue_.push_back(segment);
  }
  if (!queue_.empty()) start_copiers();
  return count;
}

std::size_t Staged::reap(std::span<Completion> completions) {
  Lock lock(mutex_, std::defer_lock);
  lock_soon(lock);
  told_ = false;
  capabilities_.pinned_bytes = ring_.size_bytes();
  capabilities_.threads = std::max<std::uint32_t>(1, copiers_.size());
  if (copiers_.empty() && accepted_ > 0) try_work(lock, *prototype_);
  const auto count = hand_out(done_, completions);
  if (done_.empty()) done_bytes_ = 0;
  accepted_ -= static_cast<std::uint32_t>(count);
  return count;
}

// One for each piece that waits and that nobody is about to look for, up to the budget. A machine
// that refuses more threads gets the work done by those that there are; with none, reap() does it.
void Staged::start_copiers() {
  // A page cache that is written takes one writer, who calls for others where they help.
  const auto pieces = writes_to_cache(queue_.front())
                          ? 1
                          : (queue_bytes_ + staged_piece_bytes - 1) / staged_piece_bytes;
  const auto ready = copiers_.size() - idle_.asleep() - busy_;
  const auto& last = queue_[queue_.size() - 1];
  const auto left = std::max(copiers_left(queue_.front()), copiers_left(last));
  const auto useful = std::min<std::uint64_t>(pieces, left);
  if (useful <= ready) return;
  auto missing = useful - ready;
  missing -= idle_.call(missing);
  const os::SignalsBlocked blocked;
  for (; missing > 0 && copiers_.size() < copiers_wanted_; --missing) {
    try {
      copiers_.emplace_back(
          [this, host = make_()](const std::stop_token& stop) { work(stop, *host); });
    } catch (const std::system_error&) {
      if (!copiers_.empty()) copiers_wanted_ = static_cast<std::uint32_t>(copiers_.size());
      break;
    } catch (const std::bad_alloc&) {
      break;
    }
  }
  capabilities_.poll_interval_ns = copiers_.empty() ? 50'000 : 0;
}

void Staged::work(const std::stop_token& stop, Transport& host) {
  ::prctl(PR_SET_TIMERSLACK, timer_slack_ns, 0, 0, 0);
  Lock lock(mutex_);
  while (!stop.stop_requested() || !queue_.empty() || !loads_.empty()) {
    if (!try_work(lock, host)) rest(lock, stop);
  }
}

// Memory can run out under the lock only, where the state is whole between two steps: what could
// not be done now is done at the next look.
bool Staged::try_work(Lock& lock, Transport& host) {
  try {
    return work_once(lock, host);
  } catch (const std::bad_alloc&) {
    lock.unlock();
    std::this_thread::sleep_for(nap);
    lock_soon(lock);
    return true;
  }
}

// One load, or false where there is nothing to do now.
bool Staged::work_once(Lock& lock, Transport& host) {
  advance();
  Load* load = next_load();
  if (load != nullptr) {
    // To watch them, unless they are back before this one has written; or to write beside it.
    const bool to_watch = !tickets_.empty() && !watched_ && !writes_to_cache(load->segments[0]);
    if (to_watch || drainable() != nullptr) idle_.call(1);
    auto* ring = memory(load->at) - load->at;
    const bool copies = !load->segments[0].direct_io;
    ++busy_;
    copying_ += copies;
    lock.unlock();
    load->move_by(host, ring);
    lock_soon(lock);
    --busy_;
    copying_ -= copies;
    settle(*load);
    count_starving();
    advance();
  }
  if (should_tell()) {
    told_ = true;
    fresh_ = false;
    wake_.signal();
  }
  return load != nullptr || grow(lock);
}

// Whether it pinned more memory, which took its time.
bool Staged::grow(Lock& lock) {
  if (!no_room_ || !grow_) return false;
  const auto pin = std::exchange(grow_, {});
  lock.unlock();
  Result<std::unique_ptr<memory::Pinned>> more = std::unique_ptr<memory::Pinned>();
  try {
    more = pin();
  } catch (const std::bad_alloc&) {
  }
  lock_soon(lock);
  if (!more || !*more) return false;  // what there is has to do
  more_pinned_ = std::move(*more);
  ring_.grow(more_pinned_->size_bytes());
  ring_.widen();
  return true;
}

std::byte* Staged::memory(std::uint64_t at) const {
  return at < pinned_->size_bytes() ? pinned_->data() + at
                                    : more_pinned_->data() + (at - pinned_->size_bytes());
}

// One more copier where the link often waits for those that there are.
void Staged::count_starving() {
  take_finished_copies();
  if (!tickets_.empty() || queue_.empty() || ++starved_ < starved_before_one_more) return;
  starved_ = 0;
  copiers_wanted_ = std::min(copiers_wanted_ + 1, most_copiers_);
}

// While copies are in flight and more waits for room, everybody naps; where nothing is left to
// claim (writes are staged by whoever looks), one watches the copies and the others sleep.
void Staged::rest(Lock& lock, const std::stop_token& stop) {
  const bool none_to_claim = claimers_left() == 0;
  if (tickets_.empty() || (watched_ && none_to_claim)) return idle_.sleep(lock, stop);
  const bool watches = !std::exchange(watched_, true);
  const auto before = tickets_.front();
  if (watches && none_to_claim) {
    os::look_for(looks_before_nap, [&] {
      lock.unlock();
      os::pause_briefly();
      lock_soon(lock);
      take_finished_copies();
      return tickets_.empty() || tickets_.front() != before;
    });
  }
  if (!tickets_.empty() && tickets_.front() == before) {
    lock.unlock();
    std::this_thread::sleep_for(nap);
    lock_soon(lock);
  }
  if (watches) watched_ = false;
}

void Staged::advance() {
  take_finished_copies();
  retire();
  stage_writes();
  send_copies();
  retire();
}

// The pump is told when it can hand out as much as a quarter of the ring, or has to, since nothing
// waits here any more.
bool Staged::should_tell() const {
  if (done_.empty() || told_) return false;
  return fresh_ || queue_.size() < copiers_wanted_ || done_.size() >= depth / 4 ||
         done_bytes_ >= ring_.size_bytes() / 4;
}

Load* Staged::next_load() {
  if (Load* load = drainable()) {
    load->state = Load::State::draining;
    return load;
  }
  return claim();
}

// How many more may move such a segment now. Direct I/O waits for a device, and takes no CPU.
std::uint32_t Staged::copiers_left(const Segment& segment) const {
  const auto limit = segment.direct_io ? most_direct_copiers : copiers_now(limit_);
  const auto working = segment.direct_io ? busy_ - copying_ : copying_;
  return limit > working ? limit - working : 0;
}

// The same, of what is the next to be claimed.
std::uint32_t Staged::claimers_left() const {
  if (queue_.empty() || queue_.front().direction == Direction::write) return 0;
  return std::min(static_cast<std::uint32_t>(queue_.size()), copiers_left(queue_.front()));
}

// A file's page cache takes one writer at a time: more only wait for the same lock.
bool Staged::may_drain(const Segment& segment) const {
  if (segment.direct_io) return true;
  for (std::size_t i = 0; i < loads_.size(); ++i) {
    if (loads_[i]->state != Load::State::draining) continue;
    const auto& other = loads_[i]->segments.front();
    if (!other.direct_io && other.file == segment.file) return false;
  }
  return true;
}

Load* Staged::drainable() {
  for (std::size_t i = 0; i < loads_.size(); ++i) {
    if (loads_[i]->state != Load::State::drain_waits) continue;
    const auto& first = loads_[i]->segments.front();
    if (copiers_left(first) > 0 && may_drain(first)) return loads_[i].get();
  }
  return nullptr;
}

// The next load: the first segment, and those behind it that go the same way, up to a piece; fewer
// where all copiers would not find work.
Staged::Next Staged::next() const {
  const auto& first = queue_.front();
  const auto most = std::min(staged_piece_bytes, ring_.size_bytes());
  const auto share = queue_bytes_ / copiers_wanted_;
  Next next{1, first.envelope_bytes};
  if (first.direct_io) return next;
  for (; next.segments < queue_.size(); ++next.segments) {
    const auto& more = queue_[next.segments];
    const auto least = next.segments < least_segments ? least_load_bytes : 0;
    const auto limit = std::min(most, std::max(share, least));
    if (more.direct_io || more.direction != first.direction ||
        next.bytes + more.envelope_bytes > limit ||
        (first.direction == Direction::write && more.file != first.file)) {
      break;
    }
    next.bytes += more.envelope_bytes;
  }
  return next;
}

// Room for a load of so many segments, and for it among the others.
bool Staged::reserve(std::size_t segments) {
  try {
    loads_.reserve(loads_.size() + 1);
    ring_.reserve();
    if (spare_.empty()) {
      spare_.reserve(loads_.size() + 1);  // so that retire() needs none
      spare_.push_back(std::make_unique<Load>());
    }
    spare_.back()->reserve(segments);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// The first segment, for want of memory.
void Staged::refuse() {
  done_.push_back({.cookie = queue_.front().cookie, .result = -ENOMEM, .error = nullptr});
  queue_bytes_ -= queue_.front().envelope_bytes;
  queue_.pop_front();
}

// Gives the next segments a region of the ring; null where there is no room.
Load* Staged::stage() {
  auto wanted = next();
  while (!reserve(wanted.segments)) {
    refuse();
    if (queue_.empty()) return nullptr;
    wanted = next();
  }
  const auto most_window = most_window_bytes(queue_.front());
  const auto at = ring_.take(wanted.bytes, most_window);
  no_room_ = !at && most_window == UINT64_MAX;
  // The link is the limit.
  if (no_room_ && tickets_.size() == copies_in_flight_limit) ring_.widen();
  if (!at) return nullptr;
  auto load = std::move(spare_.back());
  spare_.pop_back();
  load->begin(queue_.front().direction, *at);
  for (; wanted.segments > 0; --wanted.segments) {
    load->add(queue_.front());
    queue_bytes_ -= queue_.front().envelope_bytes;
    queue_.pop_front();
  }
  // More may move what comes now, perhaps, than what came before.
  const bool is_direct = load->segments.front().direct_io;
  if (!queue_.empty() && queue_.front().direct_io != is_direct) idle_.call(claimers_left());
  loads_.push_back(std::move(load));
  return loads_[loads_.size() - 1].get();
}

Load* Staged::claim() { return claimers_left() > 0 ? stage() : nullptr; }

void Staged::stage_writes() {
  while (!queue_.empty() && queue_.front().direction == Direction::write && stage() != nullptr) {
  }
}

// A copier moved it.
void Staged::settle(Load& load) {
  if (load.direction == Direction::write || load.extents.empty()) return finish(load);
  load.state = Load::State::copy_waits;
}

void Staged::finish(Load& load) {
  load.state = Load::State::done;
  done_bytes_ += load.size_bytes;
  std::move(load.completions.begin(), load.completions.end(), std::back_inserter(done_));
}

void Staged::retire() {
  std::size_t regions = 0;
  while (!loads_.empty() && loads_.front()->state == Load::State::done) {
    spare_.push_back(std::move(loads_.front()));
    loads_.pop_front();
    ring_.give_back();
    ++regions;
  }
  idle_.call(std::min<std::size_t>(regions, claimers_left()));
}

void Staged::take_finished_copies() {
  if (tickets_.empty()) return;
  const auto reached = lane_->poll();
  if (!reached) return fail_copies(reached.error());
  while (!tickets_.empty() && tickets_.front() <= *reached) tickets_.pop_front();
  for (std::size_t i = 0; i < loads_.size(); ++i) {
    Load& load = *loads_[i];
    if (load.state != Load::State::copying || load.ticket > *reached) continue;
    if (load.direction == Direction::read) {
      finish(load);
    } else {
      load.state = Load::State::drain_waits;
    }
  }
}

void Staged::send_copies() {
  std::size_t first = 0;
  while (tickets_.size() < copies_in_flight_limit && first < loads_.size()) {
    const auto& load = *loads_[first];
    // What is still being filled holds back what is behind it, so that runs can grow; but never an
    // idle engine.
    if (load.state == Load::State::filling && !tickets_.empty()) return;
    if (load.state != Load::State::copy_waits) {
      ++first;
      continue;
    }
    const auto limit =
        load.direction == Direction::read ? read_run_limit_bytes : write_run_limit_bytes;
    auto bytes = load.size_bytes;
    std::size_t count = 1;
    while (first + count < loads_.size() && bytes < limit &&
           loads_[first + count]->state == Load::State::copy_waits &&
           loads_[first + count]->at != ring_.edge() &&
           loads_[first + count]->continues(*loads_[first + count - 1])) {
      bytes += loads_[first + count++]->size_bytes;
    }
    send_run(first, count);
    first += count;
  }
}

void Staged::send_run(std::size_t first, std::size_t count) {
  if (broken_) return fail_copies(*broken_);
  const auto& head = *loads_[first];
  std::uint64_t ticket = 0;
  for (std::size_t i = 0; i < head.extents.size(); ++i) {
    const auto& extent = head.extents[i];
    auto bytes = extent.size_bytes;
    for (std::size_t k = 1; k < count; ++k) bytes += loads_[first + k]->extents[0].size_bytes;
    const auto copied = lane_->copy(head.direction, extent.address, memory(extent.at), bytes);
    if (!copied) return fail_copies(copied.error());
    ticket = *copied;
  }
  for (std::size_t k = 0; k < count; ++k) {
    loads_[first + k]->state = Load::State::copying;
    loads_[first + k]->ticket = ticket;
  }
  tickets_.push_back(ticket);
}

// A lane's error is sticky and nothing is in flight on it: every copy that runs or waits failed.
void Staged::fail_copies(const Error& error) {
  if (!broken_) broken_ = std::make_shared<const Error>(error);
  tickets_.clear();
  for (std::size_t i = 0; i < loads_.size(); ++i) {
    Load& load = *loads_[i];
    if (load.state != Load::State::copying && load.state != Load::State::copy_waits) continue;
    load.fail(broken_);
    finish(load);
  }
}

}  // namespace straightway::transport
