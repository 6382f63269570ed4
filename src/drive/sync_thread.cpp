#include "drive/sync_thread.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <utility>

#include "os/signals_blocked.hpp"

namespace straightway::drive {

struct SyncThread::Loop {
  void run();

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  bool stopping = false;
  std::atomic<std::thread::id> id{};
};

void SyncThread::Loop::run() {
  id.store(std::this_thread::get_id());
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return stopping || !queue.empty(); });
    if (queue.empty()) return;
    auto work = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    work();
    work = nullptr;  // without the lock: what it holds may be the last of a Context
    lock.lock();
  }
}

SyncThread::SyncThread() : loop_(std::make_shared<Loop>()) {}

SyncThread::~SyncThread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(loop_->mutex);
    loop_->stopping = true;
  }
  loop_->changed.notify_one();
  on_own_thread() ? thread_.detach() : thread_.join();
}

void SyncThread::add(std::function<void()> work) {
  if (!thread_.joinable()) {
    try {
      const os::SignalsBlocked blocked;
      thread_ = std::thread([loop = loop_] { loop->run(); });
    } catch (const std::exception&) {  // no thread or no memory for one
    }
    if (!thread_.joinable()) return work();
  }
  {
    const std::lock_guard lock(loop_->mutex);
    loop_->queue.push_back(std::move(work));
  }
  loop_->changed.notify_one();
}

bool SyncThread::on_own_thread() const { return loop_->id.load() == std::this_thread::get_id(); }

}  // namespace straightway::drive
