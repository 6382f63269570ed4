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

Status wait_for_event(const Driver& driver, Stream stream) {
  Event event = nullptr;
  Status status = driver.event_create(&event, event_disable_timing | event_blocking_sync);
  if (status != success) return status;
  status = driver.event_record(event, stream);
  if (status == success) status = driver.event_query(event);
  if (status == not_ready) status = driver.event_synchronize(event);
  driver.event_destroy(event);
  return status;
}

// First whether the stream is capturing: any other question would end the capture.
Status wait_in_context(const Driver& driver, Context context, Stream stream,
                       CaptureStatus& capture) {
  const Scope scope(driver, context);
  Status status = scope.status();
  if (status == success) status = driver.stream_is_capturing(stream, &capture);
  if (status != success || capture != capture_none) return status;
  return wait_for_event(driver, stream);
}

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

Result<void> wait_for_user(Devices& devices, int device, std::optional<void*> stream) {
  if (auto parent = devices.check_fork("wait for a stream"); !parent) return parent.error();
  const Driver& driver = devices.driver();
  Stream handle = static_cast<Stream>(stream.value_or(nullptr));
  if (handle == nullptr) handle = legacy_stream;
  Context callers = nullptr;
  Device callers_device = -1;
  if (driver.context_current(&callers) == success && callers != nullptr &&
      driver.context_device(&callers_device) != success) {
    callers = nullptr;
  }
  CaptureStatus capture = capture_none;
  Status implicit = success;
  auto waited = devices.in_context(device, "wait for the user's stream", [&](Context primary) {
    const Context context = context_of(driver, handle, callers, callers_device, device, primary);
    const Status status = wait_in_context(driver, context, handle, capture);
    implicit = status;
    return status == stream_capture_implicit ? success : status;
  });
  if (!waited) return waited.error();
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
  return {};
}

}  // namespace straightway::memory::cuda
