#include "transport/threaded.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>

#include "os/signals_blocked.hpp"

namespace straightway::transport {
namespace {

constexpr std::uint32_t segments_per_thread = 4;  // queued ahead, so that no worker runs dry

}  // namespace

Threaded::Threaded(Make make, std::uint32_t threads, Wake& wake)
    : make_(std::move(make)), wake_(wake), prototype_(make_()) {
  capabilities_ = prototype_->capabilities();
  capabilities_.name = "threaded";
  capabilities_.threads = std::max(threads, 1U);
  capabilities_.depth = capabilities_.threads * segments_per_thread;
  workers_.reserve(capabilities_.threads);
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
  } catch (const std::exception&) {
    if (!workers_.empty()) capabilities_.threads = static_cast<std::uint32_t>(workers_.size());
  }
}

std::size_t Threaded::submit(std::span<const Segment> segments) {
  const auto room = capabilities_.depth - std::min(in_flight_, capabilities_.depth);
  const auto count = std::min<std::size_t>(segments.size(), room);
  if (count == 0) return 0;
  std::size_t waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    queue_.insert(queue_.end(), segments.begin(),
                  segments.begin() + static_cast<std::ptrdiff_t>(count));
    waiting = queue_.size() - std::min<std::size_t>(idle_, queue_.size());
  }
  for (; waiting > 0 && workers_.size() < capabilities_.threads; --waiting) start_worker();
  in_flight_ += static_cast<std::uint32_t>(count);
  if (workers_.empty()) {  // not one thread to be had
    const std::lock_guard lock(mutex_);
    for (const auto& segment : queue_) done_.push_back(move(prototype_, segment));
    queue_.clear();
    return count;
  }
  count == 1 ? has_work_.notify_one() : has_work_.notify_all();
  return count;
}

std::size_t Threaded::reap(std::span<Completion> completions) {
  const std::lock_guard lock(mutex_);
  const auto count = std::min(completions.size(), done_.size());
  std::move(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count), completions.begin());
  done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count));
  in_flight_ -= static_cast<std::uint32_t>(count);
  return count;
}

// Makes the transport at first, and again where memory was short: that is the segment's error.
Completion Threaded::move(std::unique_ptr<Transport>& transport, const Segment& segment) const {
  Completion completion;
  completion.cookie = segment.cookie;
  completion.result = -ENOMEM;
  try {
    if (!transport) transport = make_();
    transport->submit({&segment, 1});
    transport->reap({&completion, 1});
  } catch (const std::bad_alloc&) {
  }
  return completion;
}

void Threaded::work(const std::stop_token& stop) {
  std::unique_ptr<Transport> transport;
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    has_work_.wait(lock, stop, [this] { return !queue_.empty(); });
    --idle_;
    if (queue_.empty()) return;
    const Segment segment = queue_.front();
    queue_.pop_front();
    lock.unlock();
    auto completion = move(transport, segment);
    lock.lock();
    done_.push_back(std::move(completion));
    lock.unlock();
    wake_.signal();
    lock.lock();
  }
}

}  // namespace straightway::transport
