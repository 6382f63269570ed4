#include "memory/cuda_order.hpp"

namespace straightway::memory::cuda {
namespace {

bool is_default(Stream stream) {
  return stream == nullptr || stream == legacy_stream || stream == per_thread_stream;
}

// The context of the stream: its own; for a default stream that of the caller where it is one of
// this device, since that is where the caller's work went, else the primary one.
Context context_of(const Driver& driver, Stream stream, Context callers, Device callers_device,
                   int device, Context primary) {
  Context context = nullptr;
  if (!is_default(stream)) {
    return driver.stream_context(stream, &context) == success && context != nullptr ? context
                                                                                    : primary;
  }
  return callers != nullptr && callers_device == device ? callers : primary;
}

Status record(const Driver& driver, Stream stream, Event& event) {
  Status status = driver.event_create(&event, event_disable_timing | event_blocking_sync);
  if (status != success) return status;
  status = driver.event_record(event, stream);
  if (status == success) return success;
  driver.event_destroy(event);
  event = nullptr;
  return status;
}

// First whether the stream is capturing: any other question would end the capture. Its context is
// current.
Status call_unless_capturing(const Driver& driver, const UserStream& user, CaptureStatus& capture,
                             const std::function<Status(const UserStream&)>& calls) {
  const Status status = driver.stream_is_capturing(user.stream, &capture);
  if (status != success || capture != capture_none) return status;
  return calls(user);
}

Status call_in_context(const Driver& driver, const UserStream& user, Context current,
                       CaptureStatus& capture,
                       const std::function<Status(const UserStream&)>& calls) {
  if (user.context == current) return call_unless_capturing(driver, user, capture, calls);
  const Scope scope(driver, user.context);
  if (scope.status() != success) return scope.status();
  return call_unless_capturing(driver, user, capture, calls);
}

class EventMark final : public Mark {
 public:
  EventMark(std::shared_ptr<Devices> devices, Context context, Event event, int device)
      : devices_(std::move(devices)), context_(context), event_(event), device_(device) {}
  ~EventMark() override {
    if (devices_->forked()) return;
    const Scope scope(devices_->driver(), context_);
    if (scope.status() == success) devices_->driver().event_destroy(event_);
  }

  Result<bool> reached() override {
    return ask([this] { return devices_->driver().event_query(event_); });
  }
  Result<void> wait() override {
    const auto waited = ask([this] { return devices_->driver().event_synchronize(event_); });
    if (!waited) return waited.error();
    return {};
  }

 private:
  Result<bool> ask(const std::function<Status()>& call) {
    if (auto parent = devices_->check_fork("wait for a stream"); !parent) return parent.error();
    const Scope scope(devices_->driver(), context_);
    const Status status = scope.status() == success ? call() : scope.status();
    if (status == success) return true;
    if (status == not_ready) return false;
    return driver_error(devices_->driver(), status,
                        "wait for the work queued on cuda:" + std::to_string(device_));
  }

  const std::shared_ptr<Devices> devices_;
  const Context context_;
  const Event event_;
  const int device_;
};

Error capturing(int device, std::string why, std::string advice) {
  return Error{
      .kind = ErrorKind::invalid_argument,
      .attempted = "order a transfer after the work queued on cuda:" + std::to_string(device),
      .path = {},
      .offset = {},
      .why = std::move(why),
      .advice = std::move(advice)};
}

}  // namespace

Result<UserStream> on_user_stream(Devices& devices, int device, std::optional<void*> stream,
                                  const char* attempted,
                                  const std::function<Status(const UserStream&)>& calls) {
  if (auto parent = devices.check_fork(attempted); !parent) return parent.error();
  const Driver& driver = devices.driver();
  UserStream user{nullptr, static_cast<Stream>(stream.value_or(nullptr))};
  if (user.stream == nullptr) user.stream = legacy_stream;
  Context callers = nullptr;
  Device callers_device = -1;
  if (driver.context_current(&callers) == success && callers != nullptr &&
      driver.context_device(&callers_device) != success) {
    callers = nullptr;
  }
  CaptureStatus capture = capture_none;
  Status implicit = success;
  auto called = devices.in_context(device, attempted, [&](Context primary) {
    user.context = context_of(driver, user.stream, callers, callers_device, device, primary);
    const Status status = call_in_context(driver, user, primary, capture, calls);
    implicit = status;
    return status == stream_capture_implicit ? success : status;
  });
  if (!called) return called.error();
  if (implicit == stream_capture_implicit) {
    Error error =
        capturing(device, "a stream that synchronises with the default stream is capturing",
                  "pass stream=, the stream that the memory is used on, or transfer "
                  "outside the capture");
    error.origin = ErrorOrigin::cuda;
    error.code = implicit;
    return error;
  }
  if (capture != capture_none) {
    return capturing(device, "the stream is capturing a graph, and a transfer cannot be captured",
                     "transfer before or after the capture, or pass another stream");
  }
  return user;
}

Result<std::unique_ptr<Mark>> mark_stream(const std::shared_ptr<Devices>& shared, int device,
                                          std::optional<void*> stream) {
  Event event = nullptr;
  const auto record_event = [&](const UserStream& user) {
    return record(shared->driver(), user.stream, event);
  };
  auto marked = on_user_stream(*shared, device, stream, "wait for the user's stream", record_event);
  if (!marked) return marked.error();
  return std::unique_ptr<Mark>(std::make_unique<EventMark>(shared, marked->context, event, device));
}

}  // namespace straightway::memory::cuda
