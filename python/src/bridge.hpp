#pragma once
// What lies between the interpreter and the threads of a Context. Those threads never take the GIL:
// near the end of the process that would end them inside C++ frames, which aborts the program. They
// leave what they have for Python here, and Python threads fetch it.

#include <Python.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace straightway::python {

// One Python reference, or one exported buffer. Needs the GIL, but see share().
class Lease {
 public:
  Lease() = default;
  explicit Lease(PyObject* new_reference) : reference_(new_reference) {}
  // Takes over a view that PyObject_GetBuffer filled.
  explicit Lease(std::unique_ptr<Py_buffer> view) : view_(std::move(view)) {}
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();
  PyObject* reference() const { return reference_; }

 private:
  PyObject* reference_ = nullptr;
  std::unique_ptr<Py_buffer> view_;
};

// The same, droppable on any thread: without the GIL it is handed to the bridge.
std::shared_ptr<Lease> share(Lease lease);

// A call that a Python thread is to make.
struct Event {
  std::shared_ptr<Lease> callable;
  bool is_progress = false;
  std::uint64_t moved_bytes = 0;  // of a progress event
  std::uint64_t wanted_bytes = 0;
  std::optional<std::string> text;  // of a warning
};

class Bridge {
 public:
  // From any thread, with or without the GIL.
  void post(Event event);
  void give_back(std::unique_ptr<Lease> lease);

  // With the GIL: drops what was given back.
  void collect();
  // With the GIL: waits, unlocked, for the next event.
  Event next();
  // With the GIL, when the interpreter is about to end. From here on, threads other than this one
  // that come back from an unlocked stretch stay there, and nothing is dropped any more.
  void close();

  bool may_unlock() const;
  void relock(PyThreadState* state);

 private:
  bool is_closer() const { return closer_ == std::this_thread::get_id(); }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Event> events_;
  std::vector<std::unique_ptr<Lease>> returned_;
  std::atomic<bool> has_returned_{false};
  bool collect_is_pending_ = false;
  std::atomic<bool> closed_{false};
  std::atomic<int> relocking_{0};
  std::thread::id closer_;
};

// The interpreter exists once in a process, and so does its bridge.
Bridge& bridge();
// In a forked child: a new one, since threads that are gone may have held the old one's lock.
void replace_bridge_after_fork();

// Releases the GIL for a scope.
class Unlocked {
 public:
  Unlocked() : state_(bridge().may_unlock() ? PyEval_SaveThread() : nullptr) {}
  ~Unlocked() {
    if (state_ != nullptr) bridge().relock(state_);
  }
  // Runs body with the GIL.
  template <class Body>
  auto locked(Body body) {
    if (state_ == nullptr) return body();
    bridge().relock(state_);
    auto result = body();
    state_ = PyEval_SaveThread();
    return result;
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace straightway::python
