#include "bridge.hpp"

#include <unistd.h>

#include <chrono>
#include <utility>

namespace straightway::python {
namespace {

std::atomic<Bridge*> current{nullptr};

int collect_when_called(void*) {
  bridge().collect();
  return 0;
}

// Where a daemon thread stays while the interpreter ends.
[[noreturn]] void park() {
  for (;;) pause();
}

}  // namespace

Lease::Lease(Lease&& other) noexcept
    : reference_(std::exchange(other.reference_, nullptr)), view_(std::move(other.view_)) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  std::swap(reference_, other.reference_);
  std::swap(view_, other.view_);
  return *this;
}

Lease::~Lease() {
  if (view_) PyBuffer_Release(view_.get());
  Py_XDECREF(reference_);
}

std::shared_ptr<Lease> share(Lease lease) {
  return {new Lease(std::move(lease)),
          [](Lease* dropped) { bridge().give_back(std::unique_ptr<Lease>(dropped)); }};
}

void Bridge::post(Event event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  arrived_.notify_one();
}

void Bridge::give_back(std::unique_ptr<Lease> lease) {
  const std::lock_guard lock(mutex_);
  if (closed_) {
    (void)lease.release();  // the interpreter may be gone: the process ends, and with it the memory
    return;
  }
  returned_.push_back(std::move(lease));
  has_returned_ = true;
  // Asks the main thread to collect soon; one request at a time, for its queue is short.
  if (!collect_is_pending_) {
    collect_is_pending_ = Py_AddPendingCall(collect_when_called, nullptr) == 0;
  }
}

void Bridge::collect() {
  if (!has_returned_) return;
  std::vector<std::unique_ptr<Lease>> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(returned_);
    has_returned_ = false;
    collect_is_pending_ = false;
  }
}  // here the references go: their destructors may run any code, so not under the lock

Event Bridge::next() {
  if (!may_unlock()) {
    PyEval_SaveThread();  // it may wait for ever, and close() wants the GIL back
    park();
  }
  const Unlocked unlocked;
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [this] { return !events_.empty(); });
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void Bridge::close() {
  {
    const std::lock_guard lock(mutex_);
    closer_ = std::this_thread::get_id();
    closed_ = true;
  }
  // Threads that are on their way back get the GIL now; else they would meet it at the very end.
  PyThreadState* state = PyEval_SaveThread();
  while (relocking_ != 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  PyEval_RestoreThread(state);
}

bool Bridge::may_unlock() const { return !closed_ || is_closer(); }

void Bridge::relock(PyThreadState* state) {
  ++relocking_;
  if (closed_ && !is_closer()) {
    --relocking_;
    park();
  }
  PyEval_RestoreThread(state);
  --relocking_;
}

Bridge& bridge() {
  Bridge* found = current.load();
  if (found == nullptr) {
    auto made = std::make_unique<Bridge>();
    if (current.compare_exchange_strong(found, made.get())) found = made.release();
  }
  return *found;
}

void replace_bridge_after_fork() { current.store(std::make_unique<Bridge>().release()); }

}  // namespace straightway::python
