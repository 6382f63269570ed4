#pragma once
// Batches: entries that run at once and end in any order, except that one which overlaps an earlier
// one (in the file or in memory, one of both changing it) waits for that.

#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "cufile/transfer.hpp"

namespace straightway::cufile {

class Batch : public std::enable_shared_from_this<Batch> {
 public:
  // The session outlives it.
  Batch(Session& session, unsigned capacity) : session_(session), capacity_(capacity) {}

  // All entries or none: one that is wrong refuses them all.
  abi::Code submit(std::span<const abi::BatchEntry> entries);
  // Waits until `least` events are there, nothing is left to come, or the time is over; takes up to
  // events.size() of them, and returns how many.
  std::size_t collect(std::size_t least, std::span<abi::BatchEvent> events,
                      const timespec* timeout);
  // Stops what it can; each entry gets its event.
  void cancel();
  // Cancels, takes no more entries, and returns when nothing is in flight.
  void finish();

 private:
  struct Submission;  // one submit: how many of its entries are left
  struct Entry {
    Transfer transfer;
    std::shared_ptr<Handle> handle;
    void* cookie = nullptr;
    std::shared_ptr<Submission> submission;
    bool started = false;
    Job job;
  };
  using Entries = std::list<std::shared_ptr<Entry>>;

  abi::Code check_entry(const abi::BatchEntry& entry, Entry& made) const;
  void start_ready(std::unique_lock<std::mutex>& lock);
  Job start(Entries::iterator entry);
  bool nothing_to_come() const;
  void ended(Entries::iterator entry, const Outcome& outcome, bool cancelled);
  void end_locked(Entries::iterator entry, std::int32_t status, std::size_t result);
  bool must_wait(Entries::const_iterator entry) const;

  Session& session_;
  const unsigned capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Entries unfinished_;  // in the order of their submission
  std::size_t waiting_ = 0;
  bool finished_ = false;
  std::deque<abi::BatchEvent> events_;
};

class BatchTable {
 public:
  void* add(std::shared_ptr<Batch> batch);  // null after finish_all
  std::shared_ptr<Batch> find(const void* token) const;
  std::shared_ptr<Batch> remove(const void* token);
  void finish_all();

 private:
  mutable std::mutex mutex_;
  bool finished_ = false;
  std::unordered_map<const void*, std::shared_ptr<Batch>> by_token_;
};

}  // namespace straightway::cufile
