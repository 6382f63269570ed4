// Device memory, host registrations, what the driver knows of a pointer.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "state.hpp"

namespace fake {
namespace {

constexpr std::size_t page = 4096;

std::size_t whole_pages(std::size_t size) { return (size + page - 1) / page * page; }

char* map(int fd, std::size_t size, int protection) {
  void* at = mmap(nullptr, size, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
  return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
}

}  // namespace

Mapping::Mapping(std::size_t bytes, bool managed) : size(whole_pages(bytes)) {
  const int fd = memfd_create("fake-cuda", MFD_CLOEXEC);
  if (fd < 0) return;
  if (ftruncate(fd, static_cast<off_t>(size)) == 0) {
    shadow = map(fd, size, PROT_READ | PROT_WRITE);
    device = managed ? shadow : map(fd, size, PROT_NONE);
  }
  close(fd);
}

Mapping::~Mapping() {
  if (device != nullptr && device != shadow) munmap(device, size);
  if (shadow != nullptr) munmap(shadow, size);
}

const Allocation* find_allocation(DevicePointer address) {
  const auto& all = state().allocations;
  auto found = all.upper_bound(address);
  if (found == all.begin()) return nullptr;
  --found;
  return address - found->second.start < found->second.size ? &found->second : nullptr;
}

char* shadow_of(DevicePointer address, std::size_t size, std::shared_ptr<Mapping>& keep) {
  const Allocation* first = find_allocation(address);
  if (first == nullptr) return nullptr;
  DevicePointer end = first->start + first->size;
  while (end - address < size) {  // side by side in one mapping is one piece
    const Allocation* next = find_allocation(end);
    if (next == nullptr || next->start != end || next->mapping != first->mapping) return nullptr;
    end += next->size;
  }
  keep = first->mapping;
  return keep->shadow + (address - reinterpret_cast<DevicePointer>(keep->device));
}

const Registration* find_registration(std::uintptr_t address, std::size_t size,
                                      std::uintptr_t* start) {
  const auto& all = state().registrations;
  auto found = all.upper_bound(address);
  if (found == all.begin()) return nullptr;
  --found;
  const std::uintptr_t inside = address - found->first;
  if (inside >= found->second.size || found->second.size - inside < size) return nullptr;
  if (start != nullptr) *start = found->first;
  return &found->second;
}

DevicePointer allocate(int device, std::size_t size, Kind kind, ContextState* context,
                       int segments) {
  const auto count = static_cast<std::size_t>(segments);
  auto mapping = std::make_shared<Mapping>(size * count, kind == Kind::managed);
  if (mapping->device == nullptr || mapping->shadow == nullptr) return 0;
  const auto start = reinterpret_cast<DevicePointer>(mapping->device);
  for (std::size_t i = 0; i < count; ++i) {
    state().allocations[start + i * size] = {mapping, start + i * size, size, device,
                                             kind,    context};
  }
  return start;
}

void free_memory_of(ContextState* context) {
  std::erase_if(state().allocations,
                [&](const auto& entry) { return entry.second.context == context; });
}

namespace {

Status allocate_here(DevicePointer* out, std::size_t size, Kind kind, bool is_unsafe) {
  const Lock lock(state().mutex);
  const Current current = current_context();
  if (current.status != success) return current.status;
  if (is_unsafe) {
    if (const Status status = unsafe_call(); status != success) return status;
  }
  if (size == 0) return invalid_value;
  *out = allocate(current.context->device, size, kind, current.context);
  return *out != 0 ? success : out_of_memory;
}

// The answers of cuPointerGetAttributes for one pointer; all zero where the driver knows nothing.
struct PointerAnswers {
  unsigned type = 0;
  int device = -2;
  unsigned managed = 0;
  unsigned ipc_capable = 0;
  std::uint64_t buffer_id = 0;
  DevicePointer start = 0;
  std::size_t size = 0;
  void* context = nullptr;
  void* pool = nullptr;
};

PointerAnswers look_up(DevicePointer pointer) {
  static int a_pool = 0;
  if (const Allocation* found = find_allocation(pointer)) {
    const bool bound = found->kind == Kind::plain || found->kind == Kind::managed;
    return {.type = memory_device,
            .device = found->device,
            .managed = found->kind == Kind::managed,
            .ipc_capable = found->kind == Kind::plain,
            .buffer_id = found->start,
            .start = found->start,
            .size = found->size,
            .context = bound ? found->context : nullptr,
            .pool = found->kind == Kind::pool ? &a_pool : nullptr};
  }
  std::uintptr_t start = 0;
  if (const Registration* found = find_registration(pointer, 1, &start)) {
    return {.type = memory_host,
            .device = found->context->device,
            .start = start,
            .size = found->size,
            .context = found->context};
  }
  return {};
}

template <class T>
void store(void* out, T value) {
  std::memcpy(out, &value, sizeof value);
}

Status answer(PointerAttribute attribute, void* out, const PointerAnswers& answers,
              DevicePointer pointer) {
  switch (attribute) {
    case attribute_context:
      store(out, answers.context);
      break;
    case attribute_memory_type:
      store(out, answers.type);
      break;
    case attribute_device_pointer:
      store(out, answers.type != 0 ? pointer : 0);
      break;
    case attribute_host_pointer:
      store(out, answers.type == memory_host ? pointer : 0);
      break;
    case attribute_buffer_id:
      store(out, answers.buffer_id);
      break;
    case attribute_is_managed:
      store(out, answers.managed);
      break;
    case attribute_device_ordinal:
      store(out, answers.device);
      break;
    case attribute_is_ipc_capable:
      store(out, answers.ipc_capable);
      break;
    case attribute_range_start:
      store(out, answers.start);
      break;
    case attribute_range_size:
      store(out, answers.size);
      break;
    case attribute_mapped:
      store(out, answers.type != 0 ? 1U : 0U);
      break;
    case attribute_memory_pool:
      store(out, answers.pool);
      break;
    default:
      return invalid_value;
  }
  return success;
}

Status free_allocation(DevicePointer pointer) {
  // The mapping goes outside of the lock, once no copy uses it.
  Allocation gone;
  const Lock lock(state().mutex);
  const auto found = state().allocations.find(pointer);
  if (found == state().allocations.end()) return invalid_value;
  gone = found->second;
  state().allocations.erase(found);
  return success;
}

bool overlaps(std::uintptr_t start, std::size_t size) {
  return std::ranges::any_of(state().registrations, [&](const auto& entry) {
    return start < entry.first + entry.second.size && entry.first < start + size;
  });
}

Status add_registration(void* at, std::size_t size, bool owned,
                        std::shared_ptr<PageHold> hold = nullptr) {
  const Lock lock(state().mutex);
  const Current current = current_context();
  if (current.status != success) return current.status;
  if (const Status status = unsafe_call(); status != success) return status;
  const auto start = reinterpret_cast<std::uintptr_t>(at);
  if (at == nullptr || size == 0) return invalid_value;
  if (overlaps(start, size)) return host_memory_already_registered;
  state().registrations[start] = {size, current.context, owned, std::move(hold)};
  return success;
}

}  // namespace
}  // namespace fake

using namespace fake;

FAKE_EXPORT Status cuMemAlloc_v2(DevicePointer* out, std::size_t size) {
  FAKE_ENTER(cuMemAlloc);
  return allocate_here(out, size, Kind::plain, true);
}

FAKE_EXPORT Status cuMemAllocAsync(DevicePointer* out, std::size_t size, Stream) {
  FAKE_ENTER(cuMemAllocAsync);
  return allocate_here(out, size, Kind::pool, false);
}

FAKE_EXPORT Status cuMemAllocManaged(DevicePointer* out, std::size_t size, unsigned) {
  FAKE_ENTER(cuMemAllocManaged);
  return allocate_here(out, size, Kind::managed, true);
}

// As in life, waits for the work that may use the memory.
FAKE_EXPORT Status cuMemFree_v2(DevicePointer pointer) {
  FAKE_ENTER(cuMemFree);
  {
    Lock lock(state().mutex);
    const Current current = current_context();
    if (current.status != success) return current.status;
    if (const Status status = unsafe_call(); status != success) return status;
    wait_for_context(lock, current.context);
  }
  return free_allocation(pointer);
}

FAKE_EXPORT Status cuMemFreeAsync(DevicePointer pointer, Stream) {
  FAKE_ENTER(cuMemFreeAsync);
  return free_allocation(pointer);
}

FAKE_EXPORT Status cuMemHostAlloc(void** out, std::size_t size, unsigned) {
  FAKE_ENTER(cuMemHostAlloc);
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return out_of_memory;
  const Status status = add_registration(at, size, true);
  if (status != success) munmap(at, size);
  *out = status == success ? at : nullptr;
  return status;
}

FAKE_EXPORT Status cuMemFreeHost(void* at) {
  FAKE_ENTER(cuMemFreeHost);
  const Lock lock(state().mutex);
  const auto found = state().registrations.find(reinterpret_cast<std::uintptr_t>(at));
  if (found == state().registrations.end() || !found->second.owned) return invalid_value;
  munmap(at, found->second.size);
  state().registrations.erase(found);
  return success;
}

FAKE_EXPORT Status cuMemHostRegister_v2(void* at, std::size_t size, unsigned flags) {
  FAKE_ENTER(cuMemHostRegister);
  if ((flags & host_register_read_only) == 0) return add_registration(at, size, false);
  auto hold = PageHold::make(at, size);
  if (!hold) return invalid_value;
  return add_registration(at, size, false, std::move(hold));
}

// Registered memory has one address on both sides.
FAKE_EXPORT Status cuMemHostGetDevicePointer_v2(DevicePointer* out, void* at, unsigned) {
  FAKE_ENTER(cuMemHostGetDevicePointer);
  const Lock lock(state().mutex);
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  if (find_registration(address, 1) == nullptr) return invalid_value;
  *out = address;
  return success;
}

FAKE_EXPORT Status cuMemHostUnregister(void* at) {
  FAKE_ENTER(cuMemHostUnregister);
  const Lock lock(state().mutex);
  const auto found = state().registrations.find(reinterpret_cast<std::uintptr_t>(at));
  if (found == state().registrations.end() || found->second.owned) {
    return host_memory_not_registered;
  }
  state().registrations.erase(found);
  return success;
}

FAKE_EXPORT Status cuPointerGetAttributes(unsigned count, PointerAttribute* attributes, void** out,
                                          DevicePointer pointer) {
  FAKE_ENTER(cuPointerGetAttributes);
  const Lock lock(state().mutex);
  const PointerAnswers answers = look_up(pointer);
  for (unsigned i = 0; i < count; ++i) {
    const Status status = answer(attributes[i], out[i], answers, pointer);
    if (status != success) return status;
  }
  return success;
}

FAKE_EXPORT Status cuPointerGetAttribute(void* out, PointerAttribute attribute,
                                         DevicePointer pointer) {
  FAKE_ENTER(cuPointerGetAttribute);
  const Lock lock(state().mutex);
  const PointerAnswers answers = look_up(pointer);
  if (answers.type == 0) return invalid_value;
  if (attribute == attribute_context && answers.context == nullptr) return invalid_value;
  return answer(attribute, out, answers, pointer);
}

FAKE_EXPORT Status cuMemGetAddressRange_v2(DevicePointer* start, std::size_t* size,
                                           DevicePointer pointer) {
  FAKE_ENTER(cuMemGetAddressRange);
  const Lock lock(state().mutex);
  const Allocation* found = find_allocation(pointer);
  if (found == nullptr) return not_found;
  if (start != nullptr) *start = found->start;
  if (size != nullptr) *size = found->size;
  return success;
}

FAKE_EXPORT Status cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  FAKE_ENTER(cuMemGetInfo);
  *free = *total = std::size_t{1} << 34;
  return success;
}
