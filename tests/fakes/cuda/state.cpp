#include "state.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace fake {
namespace {

std::uint64_t number(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

State* make_state() {
  auto* made = new State;
  made->pid = getpid();
  made->devices = static_cast<int>(number("FAKE_CUDA_DEVICES", 2));
  made->longest_delay_us = static_cast<unsigned>(number("FAKE_CUDA_DELAY_US", 200));
  made->wrong_copies = number("FAKE_CUDA_WRONG_COPIES", 0);
  made->random.seed(number("FAKE_CUDA_SEED", 1));
  made->primaries.resize(static_cast<std::size_t>(made->devices));
  return made;
}

bool works_without_init(const std::string& function) {
  return function == "cuInit" || function == "cuDriverGetVersion" || function == "cuGetErrorName" ||
         function == "cuGetErrorString" || function == "cuGetProcAddress";
}

}  // namespace

State& state() {
  static State* const made = make_state();
  return *made;
}

Status enter(const char* function) {
  State& s = state();
  ++s.calls;
  if (getpid() != s.pid) return not_initialized;
  const Lock lock(s.mutex);
  ++s.calls_of[function];
  const auto found = s.injected.find(function);
  if (found != s.injected.end() && found->second.count > 0) {
    --found->second.count;
    return found->second.status;
  }
  return s.initialised || works_without_init(function) ? success : not_initialized;
}

std::vector<ContextState*>& context_stack() {
  thread_local std::vector<ContextState*> stack;
  return stack;
}

CaptureMode& capture_mode() {
  thread_local CaptureMode mode = capture_global;
  return mode;
}

Current current_context() {
  auto& stack = context_stack();
  if (stack.empty() || stack.back() == nullptr) return {invalid_context, nullptr};
  ContextState* context = stack.back();
  if (context->destroyed) return {context_is_destroyed, context};
  return {context->broken, context};
}

ContextState* retain_primary(int device) {
  State& s = state();
  ContextState*& primary = s.primaries[static_cast<std::size_t>(device)];
  if (primary != nullptr) return primary;
  primary = new ContextState;
  primary->device = device;
  primary->legacy = std::make_shared<StreamState>();
  primary->legacy->context = primary;
  primary->legacy->legacy = true;
  s.contexts.insert(primary);
  return primary;
}

void destroy_context(Lock& lock, ContextState* context) {
  State& s = state();
  context->destroyed = true;
  std::vector<std::shared_ptr<StreamState>> streams = {context->legacy};
  for (const auto& [thread, stream] : context->per_thread) streams.push_back(stream);
  for (const auto& [handle, stream] : s.streams) {
    if (stream->context == context) streams.push_back(stream);
  }
  for (const auto& stream : streams) {
    stream->closed = true;
    for (const auto& work : stream->queue) {
      if (!work->running) work->done = true;  // never runs
    }
    s.streams.erase(stream.get());
  }
  s.changed.notify_all();
  s.changed.wait(lock, [&] {
    return std::ranges::all_of(streams, [](const auto& stream) { return stream->queue.empty(); });
  });
  std::erase_if(s.events, [&](EventState* event) {
    if (event->context != context) return false;
    delete event;
    return true;
  });
  free_memory_of(context);
  std::erase_if(s.registrations,
                [&](const auto& entry) { return entry.second.context == context; });
  for (ContextState*& primary : s.primaries) {
    if (primary == context) primary = nullptr;
  }
}

}  // namespace fake
