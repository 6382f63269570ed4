#pragma once
// Order after the work that the user has queued.

#include <functional>
#include <memory>
#include <optional>

#include "memory/cuda_devices.hpp"
#include "memory/space.hpp"

namespace straightway::memory::cuda {

// A stream in the context that it belongs to.
struct UserStream {
  Context context = nullptr;
  Stream stream = nullptr;
};

// Makes calls that queue work on the user's stream (nullopt: the legacy default stream of the
// device), with its context current. A capturing stream is an error, and no capture is disturbed.
Result<UserStream> on_user_stream(Devices& devices, int device, std::optional<void*> stream,
                                  const char* attempted,
                                  const std::function<Status(const UserStream&)>& calls);

// Space::mark_stream over the driver.
Result<std::unique_ptr<Mark>> mark_stream(const std::shared_ptr<Devices>& devices, int device,
                                          std::optional<void*> stream);

}  // namespace straightway::memory::cuda
