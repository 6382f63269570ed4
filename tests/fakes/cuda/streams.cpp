// Streams, the workers behind them, events and captures.
#include <algorithm>
#include <chrono>

#include "state.hpp"

namespace fake {
namespace {

bool may_run(const Work& work) {
  return state().held == 0 &&
         std::ranges::all_of(work.after, [](const auto& other) { return other->done; });
}

// Runs one piece of work at the head of the queue. Work that was given up is only taken away.
void run_head(Lock& lock, StreamState& stream) {
  State& s = state();
  const std::shared_ptr<Work> work = stream.queue.front();
  s.changed.wait(lock, [&] { return work->done || may_run(*work); });
  if (!work->done) {
    work->running = true;
    lock.unlock();
    if (work->delay_us != 0) std::this_thread::sleep_for(std::chrono::microseconds(work->delay_us));
    if (work->run) work->run();
    lock.lock();
    work->run = nullptr;
    work->after.clear();
    work->done = true;
  }
  stream.queue.pop_front();
  s.changed.notify_all();
}

void work_on(const std::shared_ptr<StreamState>& stream) {
  State& s = state();
  Lock lock(s.mutex);
  for (;;) {
    s.changed.wait(lock, [&] { return stream->closed || !stream->queue.empty(); });
    if (stream->queue.empty()) return;
    run_head(lock, *stream);
  }
}

std::shared_ptr<StreamState> per_thread_of(ContextState* context) {
  auto& stream = context->per_thread[std::this_thread::get_id()];
  if (!stream) {
    stream = std::make_shared<StreamState>();
    stream->context = context;
    stream->blocking = true;
  }
  return stream;
}

bool capturing(const StreamState& stream) { return stream.capture != capture_none; }

bool blocking_capture_in(ContextState* context) {
  return std::ranges::any_of(state().streams, [&](const auto& entry) {
    const StreamState& stream = *entry.second;
    return stream.context == context && stream.blocking && capturing(stream);
  });
}

void invalidate_captures(const std::function<bool(const StreamState&)>& which) {
  for (const auto& [handle, stream] : state().streams) {
    if (capturing(*stream) && which(*stream)) stream->capture = capture_invalidated;
  }
}

// Whether a capture forbids this thread's unsafe calls.
bool forbids(const StreamState& stream) {
  if (stream.capture != capture_active || capture_mode() == capture_relaxed) return false;
  if (stream.capture_mode == capture_global && capture_mode() == capture_global) return true;
  return stream.capture_mode != capture_relaxed &&
         stream.capture_thread == std::this_thread::get_id();
}

EventState* find_event(Event handle) {
  auto* event = reinterpret_cast<EventState*>(handle);
  return state().events.contains(event) ? event : nullptr;
}

Status sync_allowed(const StreamState& stream) {
  if (!capturing(stream)) return success;
  invalidate_captures([&](const StreamState& other) { return &other == &stream; });
  return stream_capture_unsupported;
}

}  // namespace

Status unsafe_call() {
  const bool forbidden = std::ranges::any_of(
      state().streams, [](const auto& entry) { return forbids(*entry.second); });
  if (!forbidden) return success;
  invalidate_captures(forbids);
  return stream_capture_unsupported;
}

std::shared_ptr<StreamState> find_stream(Stream handle, ContextState* context) {
  if (handle == nullptr || handle == legacy_stream) return context->legacy;
  if (handle == per_thread_stream) return per_thread_of(context);
  const auto found = state().streams.find(reinterpret_cast<StreamState*>(handle));
  return found != state().streams.end() ? found->second : nullptr;
}

Status stream_for_work(Stream handle, ContextState* context, std::shared_ptr<StreamState>& out) {
  out = find_stream(handle, context);
  if (!out) return invalid_handle;
  if (out->legacy && blocking_capture_in(context)) {
    invalidate_captures(
        [&](const StreamState& stream) { return stream.context == context && stream.blocking; });
    return stream_capture_implicit;
  }
  return success;
}

std::shared_ptr<Work> submit(const std::shared_ptr<StreamState>& stream, std::function<void()> run,
                             unsigned delay_us) {
  State& s = state();
  auto work = std::make_shared<Work>();
  if (capturing(*stream)) {  // recorded into the graph: it does not run
    work->done = true;
    return work;
  }
  work->run = std::move(run);
  work->delay_us = delay_us;
  const auto comes_first = [&](const StreamState& other) {
    if (other.last && !other.last->done) work->after.push_back(other.last);
  };
  if (stream->legacy) {
    for (const auto& [handle, other] : s.streams) {
      if (other->context == stream->context && other->blocking) comes_first(*other);
    }
    for (const auto& [thread, other] : stream->context->per_thread) comes_first(*other);
  } else if (stream->blocking) {
    comes_first(*stream->context->legacy);
  }
  stream->queue.push_back(work);
  stream->last = work;
  if (!stream->has_worker) {
    stream->has_worker = true;
    std::thread(work_on, stream).detach();
  }
  s.changed.notify_all();
  return work;
}

void wait_for(Lock& lock, const std::shared_ptr<Work>& work) {
  if (work) state().changed.wait(lock, [&] { return work->done; });
}

void wait_for_context(Lock& lock, ContextState* context) {
  wait_for(lock, context->legacy->last);
  std::vector<std::shared_ptr<Work>> last;
  for (const auto& [handle, stream] : state().streams) {
    if (stream->context == context) last.push_back(stream->last);
  }
  for (const auto& work : last) wait_for(lock, work);
}

unsigned some_delay_us() {
  State& s = state();
  return static_cast<unsigned>(s.random() % (s.longest_delay_us + 1));
}

}  // namespace fake

using namespace fake;

FAKE_EXPORT Status cuStreamCreate(Stream* out, unsigned flags) {
  FAKE_ENTER(cuStreamCreate);
  State& s = state();
  const Lock lock(s.mutex);
  const Current current = current_context();
  if (current.status != success) return current.status;
  auto stream = std::make_shared<StreamState>();
  stream->context = current.context;
  stream->blocking = (flags & stream_non_blocking) == 0;
  stream->user_made = true;
  s.streams[stream.get()] = stream;
  *out = reinterpret_cast<Stream>(stream.get());
  return success;
}

FAKE_EXPORT Status cuStreamCreateWithPriority(Stream* out, unsigned flags, int) {
  return cuStreamCreate(out, flags);
}

FAKE_EXPORT Status cuStreamDestroy_v2(Stream handle) {
  FAKE_ENTER(cuStreamDestroy);
  State& s = state();
  const Lock lock(s.mutex);
  const auto found = s.streams.find(reinterpret_cast<StreamState*>(handle));
  if (found == s.streams.end()) return invalid_handle;
  found->second->closed = true;  // what is queued still runs
  s.streams.erase(found);
  s.changed.notify_all();
  return success;
}

FAKE_EXPORT Status cuStreamQuery(Stream handle) {
  FAKE_ENTER(cuStreamQuery);
  const Lock lock(state().mutex);
  const Current current = current_context();
  if (current.status != success) return current.status;
  std::shared_ptr<StreamState> stream;
  if (const Status status = stream_for_work(handle, current.context, stream); status != success) {
    return status;
  }
  if (const Status status = sync_allowed(*stream); status != success) return status;
  if (const Status status = unsafe_call(); status != success) return status;
  return stream->last && !stream->last->done ? not_ready : success;
}

FAKE_EXPORT Status cuStreamSynchronize(Stream handle) {
  FAKE_ENTER(cuStreamSynchronize);
  Lock lock(state().mutex);
  const Current current = current_context();
  if (current.status != success) return current.status;
  std::shared_ptr<StreamState> stream;
  if (const Status status = stream_for_work(handle, current.context, stream); status != success) {
    return status;
  }
  if (const Status status = sync_allowed(*stream); status != success) return status;
  if (const Status status = unsafe_call(); status != success) return status;
  if (stream->legacy) {
    wait_for_context(lock, current.context);
  } else {
    wait_for(lock, stream->last);
  }
  return current_context().status;
}

FAKE_EXPORT Status cuStreamGetCtx(Stream handle, Context* out) {
  FAKE_ENTER(cuStreamGetCtx);
  const Lock lock(state().mutex);
  const Current current = current_context();
  if (current.status != success) return current.status;
  const auto stream = find_stream(handle, current.context);
  if (!stream) return invalid_handle;
  *out = reinterpret_cast<Context>(stream->context);
  return success;
}

FAKE_EXPORT Status cuStreamWaitEvent(Stream handle, Event event_handle, unsigned) {
  FAKE_ENTER(cuStreamWaitEvent);
  const Lock lock(state().mutex);
  const Current current = current_context();
  if (current.status != success) return current.status;
  std::shared_ptr<StreamState> stream;
  if (const Status status = stream_for_work(handle, current.context, stream); status != success) {
    return status;
  }
  EventState* event = find_event(event_handle);
  if (event == nullptr) return invalid_handle;
  if (!event->marker) return success;
  submit(stream, nullptr, 0)->after.push_back(event->marker);
  return success;
}

FAKE_EXPORT Status cuLaunchHostFunc(Stream handle, HostFunction function, void* data) {
  FAKE_ENTER(cuLaunchHostFunc);
  const Lock lock(state().mutex);
  const Current current = current_context();
  if (current.status != success) return current.status;
  std::shared_ptr<StreamState> stream;
  if (const Status status = stream_for_work(handle, current.context, stream); status != success) {
    return status;
  }
  submit(stream, [=] { function(data); }, some_delay_us());
  return success;
}

// A broken context writes nothing any more.
FAKE_EXPORT Status cuStreamWriteValue32_v2(Stream handle, DevicePointer at, unsigned value,
                                           unsigned) {
  FAKE_ENTER(cuStreamWriteValue32);
  const Lock lock(state().mutex);
  const Current current = current_context();
  if (current.status != success) return current.status;
  std::shared_ptr<StreamState> stream;
  if (const Status status = stream_for_work(handle, current.context, stream); status != success) {
    return status;
  }
  if (find_registration(at, sizeof value) == nullptr) return invalid_value;
  auto* context = stream->context;
  const auto write = [=] {
    const Lock inner(state().mutex);
    if (context->broken != success || context->destroyed) return;
    std::atomic_ref(*reinterpret_cast<unsigned*>(at)).store(value, std::memory_order_release);
  };
  submit(stream, write, 0);
  return success;
}

FAKE_EXPORT Status cuEventCreate(Event* out, unsigned) {
  FAKE_ENTER(cuEventCreate);
  State& s = state();
  const Lock lock(s.mutex);
  const Current current = current_context();
  if (current.status != success) return current.status;
  auto* event = new EventState{.context = current.context, .marker = nullptr, .captured = false};
  s.events.insert(event);
  *out = reinterpret_cast<Event>(event);
  return success;
}

FAKE_EXPORT Status cuEventDestroy_v2(Event handle) {
  FAKE_ENTER(cuEventDestroy);
  const Lock lock(state().mutex);
  EventState* event = find_event(handle);
  if (event == nullptr) return invalid_handle;
  state().events.erase(event);
  delete event;
  return success;
}

FAKE_EXPORT Status cuEventRecord(Event handle, Stream stream_handle) {
  FAKE_ENTER(cuEventRecord);
  const Lock lock(state().mutex);
  const Current current = current_context();
  if (current.status != success) return current.status;
  EventState* event = find_event(handle);
  std::shared_ptr<StreamState> stream;
  const Status status = stream_for_work(stream_handle, current.context, stream);
  if (status != success) return status;
  if (event == nullptr || event->context != stream->context) return invalid_handle;
  event->captured = capturing(*stream);
  event->marker = submit(stream, nullptr, 0);
  return success;
}

FAKE_EXPORT Status cuEventQuery(Event handle) {
  FAKE_ENTER(cuEventQuery);
  const Lock lock(state().mutex);
  EventState* event = find_event(handle);
  if (event == nullptr) return invalid_handle;
  if (event->captured) return captured_event;
  if (const Status status = unsafe_call(); status != success) return status;
  if (event->context->broken != success) return event->context->broken;
  return event->marker && !event->marker->done ? not_ready : success;
}

FAKE_EXPORT Status cuEventSynchronize(Event handle) {
  FAKE_ENTER(cuEventSynchronize);
  Lock lock(state().mutex);
  EventState* event = find_event(handle);
  if (event == nullptr) return invalid_handle;
  if (event->captured) return captured_event;
  if (const Status status = unsafe_call(); status != success) return status;
  ContextState* context = event->context;
  wait_for(lock, event->marker);
  return context->destroyed ? context_is_destroyed : context->broken;
}

FAKE_EXPORT Status cuStreamIsCapturing(Stream handle, CaptureStatus* out) {
  FAKE_ENTER(cuStreamIsCapturing);
  const Lock lock(state().mutex);
  const Current current = current_context();
  if (current.status != success) return current.status;
  const auto stream = find_stream(handle, current.context);
  if (!stream) return invalid_handle;
  if (stream->legacy && blocking_capture_in(current.context)) return stream_capture_implicit;
  *out = stream->capture;
  return success;
}

FAKE_EXPORT Status cuStreamBeginCapture_v2(Stream handle, CaptureMode mode) {
  FAKE_ENTER(cuStreamBeginCapture);
  const Lock lock(state().mutex);
  const Current current = current_context();
  if (current.status != success) return current.status;
  const auto stream = find_stream(handle, current.context);
  if (!stream || stream->legacy) return stream_capture_unsupported;
  stream->capture = capture_active;
  stream->capture_mode = mode;
  stream->capture_thread = std::this_thread::get_id();
  return success;
}

FAKE_EXPORT Status cuStreamEndCapture(Stream handle, void** graph) {
  FAKE_ENTER(cuStreamEndCapture);
  const Lock lock(state().mutex);
  const Current current = current_context();
  if (current.status != success) return current.status;
  const auto stream = find_stream(handle, current.context);
  if (!stream || stream->capture == capture_none) return invalid_value;
  const bool whole = stream->capture == capture_active;
  stream->capture = capture_none;
  static int a_graph = 0;
  *graph = whole ? &a_graph : nullptr;
  return whole ? success : stream_capture_invalidated;
}

FAKE_EXPORT Status cuThreadExchangeStreamCaptureMode(CaptureMode* mode) {
  FAKE_ENTER(cuThreadExchangeStreamCaptureMode);
  std::swap(*mode, capture_mode());
  return success;
}
