#pragma once
// The devices of the driver and their primary contexts, shared by all that the CUDA space hands
// out. Every call of the driver is made through a Scope.

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "memory/cuda_driver.hpp"
#include "memory/fork_guard.hpp"

namespace straightway::memory::cuda {

// While it lives, the context is the thread's current one, and driver calls disturb no capture that
// the user has under way. Afterwards the thread is as before.
class Scope {
 public:
  Scope(const Driver& driver, Context context);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  Status status() const { return status_; }  // not success: the context could not be made current

 private:
  const Driver& driver_;
  CaptureMode mode_ = capture_relaxed;
  Status status_;
};

// Any thread may call anything at any time.
class Devices {
 public:
  Devices(const Driver& driver, int count);

  const Driver& driver() const { return driver_; }
  int count() const { return static_cast<int>(devices_.size()); }
  bool forked() const { return guard_.forked(); }
  Result<void> check_fork(const char* attempted) const { return guard_.check(attempted); }

  // Makes calls in the device's primary context, which is retained on first use and never given
  // up. A context that turns out to be lost (the device was reset) is retained anew, and the calls
  // are made once more. The context is the result.
  Result<Context> in_context(int device, const char* attempted,
                             const std::function<Status(Context)>& calls);
  // That context turned out to be lost: the next in_context retains anew.
  void forget(int device, Context context);

  // Streams whose copies may use pinned memory.
  void add_stream(Context context, Stream stream);
  void remove_stream(Stream stream);
  // Waits for all that was queued on them.
  void wait_for_streams();

 private:
  struct Primary {
    std::mutex mutex;  // held while retaining, which takes long the first time
    Context context = nullptr;
  };
  struct OpenStream {
    Context context;
    Stream stream;
  };
  struct Retained {
    Status status;
    Context context;
    bool fresh;
  };
  Retained retain(int device);

  const Driver driver_;
  const ForkGuard guard_;
  std::vector<std::unique_ptr<Primary>> devices_;
  std::mutex streams_mutex_;
  std::vector<OpenStream> streams_;
};

}  // namespace straightway::memory::cuda
