#pragma once
// The one thread of a Context that makes writes durable, one after the other. fsync may take
// seconds, in which the pump must drive the other transfers.

#include <functional>
#include <memory>
#include <thread>

namespace straightway::drive {

class SyncThread {
 public:
  SyncThread();
  // Does all that was added. From its own thread (the last reference went there) it only asks for
  // the end.
  ~SyncThread();
  SyncThread(const SyncThread&) = delete;
  SyncThread& operator=(const SyncThread&) = delete;

  // From one thread at a time. work throws nothing. Done at once where no thread is to be had.
  // Throws std::bad_alloc with nothing added.
  void add(std::function<void()> work);
  bool on_own_thread() const;

 private:
  struct Loop;
  std::shared_ptr<Loop> loop_;
  std::thread thread_;  // starts with the first work
};

}  // namespace straightway::drive
