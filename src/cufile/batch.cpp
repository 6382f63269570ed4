#include "cufile/batch.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include "api/engine.hpp"
#include "drive/pump.hpp"

namespace straightway::cufile {
namespace {

struct Span {
  std::uint64_t begin;
  std::uint64_t end;
  bool overlaps(const Span& other) const { return begin < other.end && other.begin < end; }
};

Span file_span(const Transfer& transfer) {
  const auto begin = static_cast<std::uint64_t>(transfer.file_offset);
  return {begin, begin + transfer.size};
}

Span memory_span(const Transfer& transfer) {
  const auto begin = reinterpret_cast<std::uintptr_t>(transfer.base) +
                     static_cast<std::uint64_t>(transfer.memory_offset);
  return {begin, begin + transfer.size};
}

bool same_file(const Handle& a, const Handle& b) {
  if (a.userspace || b.userspace) return a.userspace && b.userspace && a.user == b.user;
  return a.device == b.device && a.inode == b.inode;
}

bool writes(const Transfer& transfer) { return transfer.direction() == Direction::write; }

// A read changes memory, a write the file.
bool depend(const Transfer& a, const Handle& a_file, const Transfer& b, const Handle& b_file) {
  if ((writes(a) || writes(b)) && same_file(a_file, b_file) &&
      file_span(a).overlaps(file_span(b))) {
    return true;
  }
  return (!writes(a) || !writes(b)) && memory_span(a).overlaps(memory_span(b));
}

std::size_t result_of(const Outcome& outcome) {
  const std::int64_t result = outcome.result == -1 ? -outcome.error_number : outcome.result;
  return static_cast<std::size_t>(result);
}

std::chrono::nanoseconds duration_of(const timespec& time) {
  constexpr std::int64_t most_s = std::int64_t{10} * 365 * 86400;
  const std::int64_t seconds = std::clamp<std::int64_t>(time.tv_sec, 0, most_s);
  return std::chrono::seconds(seconds) +
         std::chrono::nanoseconds(std::clamp<std::int64_t>(time.tv_nsec, 0, 999'999'999));
}

}  // namespace

struct Batch::Submission {
  std::size_t left = 0;
  std::uint64_t begun_ns = 0;
};

abi::Code Batch::check_entry(const abi::BatchEntry& entry, Entry& made) const {
  if (entry.mode != abi::batch_mode) return abi::batch_submit_failed;
  if (entry.opcode != abi::opcode_read && entry.opcode != abi::opcode_write) {
    return abi::invalid_value;
  }
  made.handle = session_.handles.find(entry.handle);
  if (!made.handle) return abi::handle_not_registered;
  if (entry.memory == nullptr || entry.memory_offset < 0) return abi::invalid_value;
  made.transfer = {entry.opcode == abi::opcode_read ? Flow::batch_read : Flow::batch_write,
                   entry.memory, entry.size, entry.file_offset, entry.memory_offset};
  made.cookie = entry.cookie;
  Checked checked;
  const auto failed = check(session_, *made.handle, made.transfer, checked);
  return failed ? code_of(*failed) : abi::success;
}

abi::Code Batch::submit(std::span<const abi::BatchEntry> entries) {
  if (entries.empty() || entries.size() > capacity_) return abi::internal_batch_submit_error;
  auto submission = std::make_shared<Submission>();
  submission->left = entries.size();
  submission->begun_ns = drive::now_ns();
  Entries made;
  for (const abi::BatchEntry& entry : entries) {
    const auto& fresh = made.emplace_back(std::make_shared<Entry>());
    const abi::Code code = check_entry(entry, *fresh);
    if (code != abi::success) return code;
    fresh->submission = submission;
  }
  using L = abi::Level1;
  std::unique_lock lock(mutex_);
  if (finished_) return abi::invalid_context_error;
  if (unfinished_.size() + made.size() > capacity_) return abi::batch_full;
  waiting_ += made.size();
  unfinished_.splice(unfinished_.end(), made);
  start_ready(lock);
  lock.unlock();
  session_.statistics.count_result(&L::batch_aio_submit, true, entries.size());
  session_.statistics.count_result(&L::batch_total_submit, true, entries.size());
  session_.statistics.add(&L::batch_submit_latency_sum_us,
                          (drive::now_ns() - submission->begun_ns) / 1000);
  return abi::success;
}

bool Batch::must_wait(Entries::const_iterator entry) const {
  const Entry& later = **entry;
  return std::any_of(unfinished_.begin(), entry, [&](const std::shared_ptr<Entry>& earlier) {
    return depend(earlier->transfer, *earlier->handle, later.transfer, *later.handle);
  });
}

// Without the lock. Where it cannot begin, that is its end.
Job Batch::start(Entries::iterator entry) {
  try {
    return cufile::submit(
        session_, (*entry)->handle, (*entry)->transfer, true,
        [self = shared_from_this(), entry](const Outcome& outcome, bool cancelled) {
          self->ended(entry, outcome, cancelled);
        });
  } catch (const std::exception&) {  // no memory
    ended(entry, fail_with(ENOMEM), false);
    return {};
  }
}

// Submitting may end an entry at once, so the lock is open meanwhile, and the search begins anew.
void Batch::start_ready(std::unique_lock<std::mutex>& lock) {
  for (auto at = unfinished_.begin(); at != unfinished_.end();) {
    const std::shared_ptr<Entry> entry = *at;
    if (entry->started || must_wait(at)) {
      ++at;
      continue;
    }
    entry->started = true;
    --waiting_;
    lock.unlock();
    Job job = start(at);
    lock.lock();
    entry->job = std::move(job);
    at = std::ranges::find_if(unfinished_, [](const auto& one) { return !one->started; });
  }
}

void Batch::end_locked(Entries::iterator entry, std::int32_t status, std::size_t result) {
  using L = abi::Level1;
  events_.push_back({(*entry)->cookie, status, result});
  Submission& submission = *(*entry)->submission;
  if (--submission.left == 0) {
    session_.statistics.count_result(&L::batch_complete, true);
    session_.statistics.add(&L::batch_complete_latency_sum_us,
                            (drive::now_ns() - submission.begun_ns) / 1000);
  }
  unfinished_.erase(entry);
  changed_.notify_all();
}

void Batch::ended(Entries::iterator entry, const Outcome& outcome, bool cancelled) {
  std::unique_lock lock(mutex_);
  if (cancelled) {
    end_locked(entry, abi::canceled, 0);
  } else {
    end_locked(entry, outcome.result < 0 ? abi::failed : abi::complete, result_of(outcome));
  }
  if (waiting_ > 0) start_ready(lock);
}

// In a forked child what its parent has in flight ends in the parent alone.
bool Batch::nothing_to_come() const {
  return unfinished_.empty() || session_.context->engine()->is_forked_child();
}

std::size_t Batch::collect(std::size_t least, std::span<abi::BatchEvent> events,
                           const timespec* timeout) {
  std::unique_lock lock(mutex_);
  const auto enough = [&] { return events_.size() >= least || nothing_to_come(); };
  if (timeout == nullptr) {
    changed_.wait(lock, enough);
  } else {
    changed_.wait_for(lock, duration_of(*timeout), enough);
  }
  const std::size_t count = std::min(events.size(), events_.size());
  std::copy_n(events_.begin(), count, events.begin());
  events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

void Batch::cancel() {
  std::vector<Job> running;  // cancelled without the lock, which their ends take
  {
    const std::lock_guard lock(mutex_);
    for (auto at = unfinished_.begin(); at != unfinished_.end();) {
      const auto entry = at++;
      if ((*entry)->started) {
        running.push_back((*entry)->job);
        continue;
      }
      --waiting_;
      end_locked(entry, abi::canceled, 0);
    }
  }
  for (const Job& job : running) job.cancel();
}

void Batch::finish() {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  cancel();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return nothing_to_come(); });
}

void* BatchTable::add(std::shared_ptr<Batch> batch) {
  static std::atomic<std::uint64_t> count{0};
  constexpr std::uint64_t tag = 0x5342'0000'0000'0000;  // outside every address space
  auto* token = reinterpret_cast<void*>(tag + 16 * ++count);
  const std::lock_guard lock(mutex_);
  if (finished_) return nullptr;
  by_token_.emplace(token, std::move(batch));
  return token;
}

std::shared_ptr<Batch> BatchTable::find(const void* token) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_token_.find(token);
  return found == by_token_.end() ? nullptr : found->second;
}

std::shared_ptr<Batch> BatchTable::remove(const void* token) {
  const std::lock_guard lock(mutex_);
  const auto found = by_token_.find(token);
  if (found == by_token_.end()) return nullptr;
  auto batch = std::move(found->second);
  by_token_.erase(found);
  return batch;
}

void BatchTable::finish_all() {
  std::unordered_map<const void*, std::shared_ptr<Batch>> all;
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    all.swap(by_token_);
  }
  for (const auto& [token, batch] : all) batch->finish();
}

}  // namespace straightway::cufile
