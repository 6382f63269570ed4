#include "memory/cuda_devices.hpp"

#include <algorithm>

namespace straightway::memory::cuda {

Scope::Scope(const Driver& driver, Context context) : driver_(driver) {
  driver_.exchange_capture_mode(&mode_);
  status_ = driver_.context_push(context);
}

Scope::~Scope() {
  Context popped = nullptr;
  if (status_ == success) driver_.context_pop(&popped);
  driver_.exchange_capture_mode(&mode_);
}

Devices::Devices(const Driver& driver, int count) : driver_(driver) {
  for (int i = 0; i < count; ++i) devices_.push_back(std::make_unique<Primary>());
}

Devices::Retained Devices::retain(int device) {
  Primary& primary = *devices_[static_cast<std::size_t>(device)];
  const std::lock_guard lock(primary.mutex);
  if (primary.context != nullptr) return {success, primary.context, false};
  Device handle = 0;
  Status status = driver_.device_get(&handle, device);
  if (status == success) status = driver_.primary_retain(&primary.context, handle);
  if (status != success) primary.context = nullptr;
  return {status, primary.context, true};
}

void Devices::forget(int device, Context context) {
  Primary& primary = *devices_[static_cast<std::size_t>(device)];
  const std::lock_guard lock(primary.mutex);
  if (primary.context == context) primary.context = nullptr;
}

Result<Context> Devices::in_context(int device, const char* attempted,
                                    const std::function<Status(Context)>& calls) {
  if (auto parent = check_fork(attempted); !parent) return parent.error();
  const std::string what = std::string(attempted) + " on cuda:" + std::to_string(device);
  if (device < 0 || device >= count()) {
    return Error{.kind = ErrorKind::invalid_argument,
                 .attempted = what,
                 .path = {},
                 .offset = {},
                 .why = "there is no such device; this process sees " + std::to_string(count()),
                 .advice = "see CUDA_VISIBLE_DEVICES"};
  }
  for (;;) {
    const Retained retained = retain(device);
    Status status = retained.status;
    if (status == success) {
      const Scope scope(driver_, retained.context);
      status = scope.status() == success ? calls(retained.context) : scope.status();
      if (status == success) return retained.context;
    }
    if (context_is_lost(status)) forget(device, retained.context);
    if (retained.fresh || !context_is_lost(status)) return driver_error(driver_, status, what);
  }
}

void Devices::add_stream(Context context, Stream stream) {
  const std::lock_guard lock(streams_mutex_);
  streams_.push_back({context, stream});
}

void Devices::remove_stream(Stream stream) {
  const std::lock_guard lock(streams_mutex_);
  std::erase_if(streams_, [&](const OpenStream& open) { return open.stream == stream; });
}

void Devices::wait_for_streams() {
  const std::lock_guard lock(streams_mutex_);
  for (const OpenStream& open : streams_) {
    const Scope scope(driver_, open.context);
    // A failure means that the context is gone, and its copies with it.
    if (scope.status() == success) driver_.stream_synchronize(open.stream);
  }
}

}  // namespace straightway::memory::cuda
