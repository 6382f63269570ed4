#include "drive/crew.hpp"

#include <system_error>

#include "os/pause.hpp"
#include "os/signals_blocked.hpp"

namespace straightway::drive {
namespace {

// Between two reads that follow each other; waking a sleeping thread takes 50 us on a virtual
// machine.
constexpr auto looks_before_sleep = std::chrono::microseconds(100);

std::uint32_t next_of(std::uint64_t job) { return job & 0xFFFF; }
std::uint32_t count_of(std::uint64_t job) { return (job >> 16) & 0xFFFF; }

}  // namespace

Crew::~Crew() {
  stopping_ = true;
  job_.fetch_add(std::uint64_t{1} << 32);  // wakes them: a job without pieces
  job_.notify_all();
  for (auto& thread : threads_) thread.join();
}

// Takes the next piece and does it; false where none is left.
bool Crew::take_part() {
  auto job = job_.load(std::memory_order_acquire);
  do {
    if (next_of(job) >= count_of(job)) return false;
  } while (!job_.compare_exchange_weak(job, job + 1, std::memory_order_acq_rel));
  // The job cannot end before this piece is done, so its function is still there.
  (*piece_.load(std::memory_order_acquire))(next_of(job));
  if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_of(job)) done_.notify_all();
  return true;
}

void Crew::help() {
  while (!stopping_) {
    if (take_part()) continue;
    const auto seen = job_.load(std::memory_order_acquire);
    if (next_of(seen) < count_of(seen)) continue;
    const auto changed = [&] { return job_.load(std::memory_order_acquire) != seen; };
    if (!os::look_for(looks_before_sleep, changed) && !stopping_) {
      job_.wait(seen, std::memory_order_acquire);
    }
  }
}

void Crew::start_helpers() {
  const os::SignalsBlocked blocked;
  try {
    while (threads_.size() < helpers_) threads_.emplace_back([this] { help(); });
  } catch (const std::system_error&) {  // the calling thread does what no helper does
  }
}

bool Crew::run(std::uint32_t count, const std::function<void(std::uint32_t)>& piece,
               const std::function<void()>& meanwhile) {
  const std::unique_lock lock(one_job_, std::try_to_lock);
  if (!lock) return false;
  if (threads_.empty() && helpers_ > 0) start_helpers();
  piece_.store(&piece, std::memory_order_release);
  done_.store(0, std::memory_order_relaxed);
  const auto number = (job_.load(std::memory_order_relaxed) >> 32) + 1;
  job_.store((number << 32) | (std::uint64_t{count} << 16), std::memory_order_release);
  job_.notify_all();
  if (meanwhile) meanwhile();
  while (take_part()) {
  }
  const auto all_done = [&] { return done_.load(std::memory_order_acquire) == count; };
  if (os::look_for(looks_before_sleep, all_done)) return true;
  while (!all_done()) {
    const auto done = done_.load(std::memory_order_acquire);
    if (done != count) done_.wait(done, std::memory_order_acquire);
  }
  return true;
}

}  // namespace straightway::drive
