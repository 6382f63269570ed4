// The tests' controls: fake_cuda.hpp says what each does.
#include <cstring>

#include "state.hpp"
#include "tests/fakes/fake_cuda.hpp"

using namespace fake;

#define FAKE_DECLARE(member, ...) \
  FAKE_EXPORT std::remove_pointer_t<std::add_pointer_t<__VA_ARGS__>> fake_cuda_##member;
FAKE_CUDA_CONTROLS(FAKE_DECLARE)
#undef FAKE_DECLARE

void fake_cuda_fail_next(const char* function, int count, int status) {
  const Lock lock(state().mutex);
  state().injected[function] = {count, static_cast<Status>(status)};
}

void fake_cuda_fail_copies(int status) {
  const Lock lock(state().mutex);
  state().copy_error = static_cast<Status>(status);
}

void fake_cuda_heal() {
  const Lock lock(state().mutex);
  state().injected.clear();
  state().copy_error = success;
  state().held = 0;
  state().held_copies = 0;
  state().changed.notify_all();
}

void fake_cuda_hold(int on) {
  const Lock lock(state().mutex);
  state().held += on != 0 ? 1 : -1;
  state().changed.notify_all();
}

void fake_cuda_hold_copies(int on) {
  const Lock lock(state().mutex);
  state().held_copies += on != 0 ? 1 : -1;
  state().changed.notify_all();
}

void fake_cuda_lose_device(int device) {
  Lock lock(state().mutex);
  ContextState* primary = state().primaries.at(static_cast<std::size_t>(device));
  if (primary != nullptr) destroy_context(lock, primary);
}

int fake_cuda_fill_later(unsigned long long at, int value, std::size_t size, void* stream,
                         unsigned delay_us) {
  const Lock lock(state().mutex);
  std::shared_ptr<Mapping> keep;
  char* to = shadow_of(at, size, keep);
  if (to == nullptr) return invalid_value;
  ContextState* context = retain_primary(find_allocation(at)->device);
  std::shared_ptr<StreamState> found;
  const Status status = stream_for_work(static_cast<Stream>(stream), context, found);
  if (status != success) return status;
  submit(found, [=] { (void)keep, std::memset(to, value, size); }, delay_us);
  return success;
}

int fake_cuda_read(unsigned long long from, void* to, std::size_t size) {
  const Lock lock(state().mutex);
  std::shared_ptr<Mapping> keep;
  const char* at = shadow_of(from, size, keep);
  if (at == nullptr) return invalid_value;
  if (size > 0) std::memcpy(to, at, size);
  return success;
}

int fake_cuda_write(unsigned long long to, const void* from, std::size_t size) {
  const Lock lock(state().mutex);
  std::shared_ptr<Mapping> keep;
  char* at = shadow_of(to, size, keep);
  if (at == nullptr) return invalid_value;
  if (size > 0) std::memcpy(at, from, size);
  return success;
}

void* fake_cuda_shadow(unsigned long long address, std::size_t size) {
  const Lock lock(state().mutex);
  std::shared_ptr<Mapping> keep;
  return shadow_of(address, size, keep);
}

unsigned long long fake_cuda_allocate(int device, std::size_t size) {
  const Lock lock(state().mutex);
  return allocate(device, size, Kind::plain, nullptr);
}

unsigned long long fake_cuda_allocate_segments(int device, std::size_t segment_bytes,
                                               int segments) {
  const Lock lock(state().mutex);
  return allocate(device, segment_bytes, Kind::segment, nullptr, segments);
}

// All segments of the mapping go.
void fake_cuda_release(unsigned long long address) {
  const Lock lock(state().mutex);
  const Allocation* found = find_allocation(address);
  if (found == nullptr) return;
  const std::shared_ptr<Mapping> mapping = found->mapping;
  std::erase_if(state().allocations,
                [&](const auto& entry) { return entry.second.mapping == mapping; });
}

std::uint64_t fake_cuda_pinned_bytes() {
  const Lock lock(state().mutex);
  std::uint64_t sum = 0;
  for (const auto& [start, registration] : state().registrations) sum += registration.size;
  return sum;
}

std::uint64_t fake_cuda_allocations() {
  const Lock lock(state().mutex);
  return state().allocations.size();
}

std::uint64_t fake_cuda_streams() {
  const Lock lock(state().mutex);
  return state().streams.size();
}

std::uint64_t fake_cuda_events() {
  const Lock lock(state().mutex);
  return state().events.size();
}

std::uint64_t fake_cuda_contexts() {
  const Lock lock(state().mutex);
  std::uint64_t sum = 0;
  for (const ContextState* primary : state().primaries) sum += primary != nullptr ? 1 : 0;
  return sum;
}

// No lock: a forked child asks, and its copy of the mutex may be held for ever.
std::uint64_t fake_cuda_calls() { return state().calls; }

std::uint64_t fake_cuda_calls_of(const char* function) {
  const Lock lock(state().mutex);
  const auto found = state().calls_of.find(function);
  return found != state().calls_of.end() ? found->second : 0;
}

std::uint64_t fake_cuda_pageable_copies() {
  const Lock lock(state().mutex);
  return state().pageable_copies;
}
