#include "transport/threaded.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <new>

#include "os/signals_blocked.hpp"
#include "transport/hand_out.hpp"
#include "transport/move_now.hpp"

namespace straightway::transport {
namespace {

// Queued ahead, so that no worker runs dry.
constexpr std::uint32_t segments_per_thread = 4;
constexpr std::uint64_t bytes_per_thread = std::uint64_t{4} << 20;
constexpr std::uint32_t small_segments_per_thread = 64;
// One worker takes as much at once.
constexpr std::uint64_t share_limit_bytes = std::uint64_t{1} << 20;

}  // namespace

Threaded::Threaded(Make make, std::uint32_t threads, Wake& wake, CopierLimit limit)
    : make_(std::move(make)),
      limit_(std::move(limit)),
      wake_(wake),
      prototype_(make_()),
      most_workers_(std::max(threads, 1U)),
      workers_wanted_(most_workers_) {
  capabilities_ = prototype_->capabilities();
  capabilities_.name = "threaded";
  capabilities_.threads = 1;
  capabilities_.depth = most_workers_ * small_segments_per_thread;
  workers_.reserve(most_workers_);
  done_.reserve(capabilities_.depth);
}

Threaded::~Threaded() {
  for (auto& worker : workers_) worker.request_stop();
  workers_.clear();  // joins; each finishes what was queued first
}

// A machine that refuses more threads, or memory for them, gets the work done by those that there
// are; with none the submitting thread does it.
void Threaded::start_worker() {
  const os::SignalsBlocked blocked;
  try {
    workers_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    capabilities_.threads = static_cast<std::uint32_t>(workers_.size());
  } catch (const std::exception&) {
    if (!workers_.empty()) workers_wanted_ = static_cast<std::uint32_t>(workers_.size());
  }
}

// Takes a few segments for each worker, of small ones as many as make as many bytes.
std::size_t Threaded::room_for(std::span<const Segment> segments) const {
  std::size_t count = 0;
  auto bytes = queue_bytes_;
  for (const auto& segment : segments) {
    const auto in_flight = in_flight_ + count;
    const bool few = in_flight < workers_wanted_ * segments_per_thread;
    const bool small = bytes < workers_wanted_ * bytes_per_thread;
    if (in_flight >= capabilities_.depth || (!few && !small)) break;
    bytes += segment.size_bytes;
    ++count;
  }
  return count;
}

std::size_t Threaded::submit(std::span<const Segment> segments) {
  std::size_t count = 0;
  std::size_t waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    count = room_for(segments);
    if (count == 0) return 0;
    queue_.insert(queue_.end(), segments.begin(),
                  segments.begin() + static_cast<std::ptrdiff_t>(count));
    for (const auto& segment : segments.first(count)) queue_bytes_ += segment.size_bytes;
    waiting = queue_.size() - std::min<std::size_t>(idle_, queue_.size());
  }
  const auto limit = copiers_now(limit_);
  for (; waiting > 0 && workers_.size() < std::min(workers_wanted_, limit); --waiting) {
    start_worker();
  }
  in_flight_ += static_cast<std::uint32_t>(count);
  if (workers_.empty()) {  // not one thread to be had
    const std::lock_guard lock(mutex_);
    for (const auto& segment : queue_) {
      Completion completion;
      move(prototype_, {&segment, 1}, {&completion, 1});
      done_.push_back(std::move(completion));
    }
    queue_.clear();
    queue_bytes_ = 0;
    return count;
  }
  count == 1 ? has_work_.notify_one() : has_work_.notify_all();
  return count;
}

// The worker's share of what waits: one segment, or several small ones.
std::size_t Threaded::take_share(std::span<Segment> share) {
  const auto limit = std::clamp<std::size_t>(queue_.size() / most_workers_, 1, share.size());
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  do {
    share[count++] = queue_.front();
    bytes += queue_.front().size_bytes;
    queue_bytes_ -= queue_.front().size_bytes;
    queue_.pop_front();
  } while (count < limit && bytes + queue_.front().size_bytes <= share_limit_bytes);
  return count;
}

std::size_t Threaded::reap(std::span<Completion> completions) {
  const std::lock_guard lock(mutex_);
  const auto count = hand_out(done_, completions);
  in_flight_ -= static_cast<std::uint32_t>(count);
  return count;
}

// Makes the transport at first, and again where memory was short: that is the segments' error.
void Threaded::move(std::unique_ptr<Transport>& transport, std::span<const Segment> segments,
                    std::span<Completion> completions) const {
  try {
    if (!transport) transport = make_();
  } catch (const std::bad_alloc&) {
    for (std::size_t i = 0; i < segments.size(); ++i) {
      completions[i] = {.cookie = segments[i].cookie, .result = -ENOMEM, .error = nullptr};
    }
    return;
  }
  move_now(*transport, segments, completions);
}

void Threaded::work(const std::stop_token& stop) {
  std::unique_ptr<Transport> transport;
  std::array<Segment, small_segments_per_thread> share;  // on the stack: memory may be short
  std::array<Completion, small_segments_per_thread> moved;
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    has_work_.wait(lock, stop, [this] { return !queue_.empty() && busy_ < copiers_now(limit_); });
    --idle_;
    if (queue_.empty()) return;
    const auto count = take_share(share);
    ++busy_;
    lock.unlock();
    move(transport, std::span(share).first(count), std::span(moved).first(count));
    lock.lock();
    --busy_;
    for (std::size_t i = 0; i < count; ++i) done_.push_back(std::move(moved[i]));
    lock.unlock();
    wake_.signal();
    lock.lock();
  }
}

}  // namespace straightway::transport
