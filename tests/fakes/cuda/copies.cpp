// Copies. Those between device and pinned memory run late; the bytes are taken only then.
#include <cstring>

#include "state.hpp"

namespace fake {
namespace {

// One end of a copy.
struct End {
  char* at = nullptr;
  std::shared_ptr<Mapping> keep;  // device memory
  bool pinned = false;
  std::shared_ptr<PageHold> hold = nullptr;  // held pages: their bytes, not the mapping's
  std::size_t hold_offset = 0;
};

End device_end(DevicePointer address, std::size_t size) {
  End end;
  end.at = shadow_of(address, size, end.keep);
  return end;
}

End host_end(const void* address, std::size_t size) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  std::uintptr_t start = 0;
  const Registration* found = find_registration(at, size, &start);
  End end;
  end.at = static_cast<char*>(const_cast<void*>(address));
  end.pinned = found != nullptr;
  if (found != nullptr && found->hold) {
    end.hold = found->hold;
    end.hold_offset = at - start;
  }
  return end;
}

// Device or host, as the address says.
End any_end(DevicePointer address, std::size_t size) {
  if (find_allocation(address) != nullptr) return device_end(address, size);
  return host_end(reinterpret_cast<void*>(address), size);
}

// Whether this copy is one of those that FAKE_CUDA_WRONG_COPIES asks for.
bool is_to_be_wrong() {
  const Lock lock(state().mutex);
  const std::uint64_t every = state().wrong_copies;
  return every > 0 && ++state().copies_to_device % every == 0;
}

// What the worker does: the copy, or the failure that was asked for.
void move_bytes(ContextState* context, const End& to, const End& from, std::size_t size) {
  {
    Lock lock(state().mutex);
    state().changed.wait(lock, [] { return state().held_copies == 0; });
    if (state().copy_error != success) context->broken = state().copy_error;
    if (context->broken != success) return;
  }
  if (!from.hold) {
    std::memmove(to.at, from.at, size);
  } else if (!from.hold->read(from.hold_offset, to.at, size)) {
    const Lock lock(state().mutex);
    context->broken = illegal_address;
    return;
  }
  if (to.keep != nullptr && size > 0 && is_to_be_wrong()) to.at[size / 2] ^= 1;
}

// Pageable memory is read before the call returns, and written before it returns.
Status copy_on(Lock& lock, const std::shared_ptr<StreamState>& stream, const End& to,
               const End& from, std::size_t size) {
  ContextState* context = stream->context;
  const bool late_source = from.keep != nullptr || from.pinned;
  const bool late_target = to.keep != nullptr || to.pinned;
  if (!late_source || !late_target) ++state().pageable_copies;
  std::shared_ptr<Work> work;
  if (late_source) {
    work = submit(stream, [=] { move_bytes(context, to, from, size); }, some_delay_us());
  } else {
    auto bytes = std::make_shared<std::vector<char>>(from.at, from.at + size);
    End copied;
    copied.at = bytes->data();
    const auto run = [=] { (void)bytes, move_bytes(context, to, copied, size); };
    work = submit(stream, run, some_delay_us());
  }
  if (!late_target) wait_for(lock, work);
  return success;
}

enum class Way { to_device, to_host, within_device, any };

Status copy(Way way, DevicePointer to_address, DevicePointer from_address, std::size_t size,
            Stream handle, bool wait) {
  Lock lock(state().mutex);
  const Current current = current_context();
  if (current.status != success) return current.status;
  std::shared_ptr<StreamState> stream;
  if (const Status status = stream_for_work(handle, current.context, stream); status != success) {
    return status;
  }
  const auto end = [&](bool is_device, DevicePointer address) {
    if (way == Way::any) return any_end(address, size);
    return is_device ? device_end(address, size) : host_end(reinterpret_cast<void*>(address), size);
  };
  const End to = end(way == Way::to_device || way == Way::within_device, to_address);
  const End from = end(way == Way::to_host || way == Way::within_device, from_address);
  if (to.at == nullptr || from.at == nullptr) return size == 0 ? success : invalid_value;
  if (wait) {
    if (const Status status = unsafe_call(); status != success) return status;
  }
  const Status status = copy_on(lock, stream, to, from, size);
  if (status == success && wait) {
    wait_for(lock, stream->last);
    return current_context().status;
  }
  return status;
}

DevicePointer number_of(const void* pointer) { return reinterpret_cast<DevicePointer>(pointer); }

}  // namespace
}  // namespace fake

using namespace fake;

FAKE_EXPORT Status cuStreamSynchronize(Stream handle);

FAKE_EXPORT Status cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, std::size_t size,
                                        Stream stream) {
  FAKE_ENTER(cuMemcpyHtoDAsync);
  return copy(Way::to_device, to, number_of(from), size, stream, false);
}

FAKE_EXPORT Status cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, std::size_t size,
                                        Stream stream) {
  FAKE_ENTER(cuMemcpyDtoHAsync);
  return copy(Way::to_host, number_of(to), from, size, stream, false);
}

FAKE_EXPORT Status cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, std::size_t size,
                                        Stream stream) {
  FAKE_ENTER(cuMemcpyDtoDAsync);
  return copy(Way::within_device, to, from, size, stream, false);
}

FAKE_EXPORT Status cuMemcpyAsync(DevicePointer to, DevicePointer from, std::size_t size,
                                 Stream stream) {
  FAKE_ENTER(cuMemcpyAsync);
  return copy(Way::any, to, from, size, stream, false);
}

FAKE_EXPORT Status cuMemcpyHtoD_v2(DevicePointer to, const void* from, std::size_t size) {
  FAKE_ENTER(cuMemcpyHtoD);
  return copy(Way::to_device, to, number_of(from), size, legacy_stream, true);
}

FAKE_EXPORT Status cuMemcpyDtoH_v2(void* to, DevicePointer from, std::size_t size) {
  FAKE_ENTER(cuMemcpyDtoH);
  return copy(Way::to_host, number_of(to), from, size, legacy_stream, true);
}

FAKE_EXPORT Status cuMemcpyDtoD_v2(DevicePointer to, DevicePointer from, std::size_t size) {
  FAKE_ENTER(cuMemcpyDtoD);
  return copy(Way::within_device, to, from, size, legacy_stream, true);
}

FAKE_EXPORT Status cuMemcpy(DevicePointer to, DevicePointer from, std::size_t size) {
  FAKE_ENTER(cuMemcpy);
  return copy(Way::any, to, from, size, legacy_stream, true);
}

FAKE_EXPORT Status cuMemsetD8Async(DevicePointer at, unsigned char value, std::size_t size,
                                   Stream handle) {
  FAKE_ENTER(cuMemsetD8Async);
  const Lock lock(state().mutex);
  const Current current = current_context();
  if (current.status != success) return current.status;
  std::shared_ptr<StreamState> stream;
  if (const Status status = stream_for_work(handle, current.context, stream); status != success) {
    return status;
  }
  const End to = device_end(at, size);
  if (to.at == nullptr) return invalid_value;
  submit(stream, [=] { std::memset(to.at, value, size); }, some_delay_us());
  return success;
}

FAKE_EXPORT Status cuMemsetD8_v2(DevicePointer at, unsigned char value, std::size_t size) {
  FAKE_ENTER(cuMemsetD8);
  const Status status = cuMemsetD8Async(at, value, size, legacy_stream);
  return status == success ? cuStreamSynchronize(legacy_stream) : status;
}
