#include "memory/cuda_pointer.hpp"

#include <iterator>
#include <limits>

namespace straightway::memory::cuda {
namespace {

struct PointerFacts {
  MemoryType type{};  // 0: the driver does not know the pointer
  int device = -1;
  unsigned managed = 0;
  unsigned ipc_capable = 0;
  DevicePointer start = 0;
  std::size_t size_bytes = 0;
  void* pool = nullptr;
};

Status ask(const Driver& driver, DevicePointer pointer, PointerFacts& facts) {
  PointerAttribute names[] = {attribute_memory_type, attribute_device_ordinal,
                              attribute_is_managed,  attribute_is_ipc_capable,
                              attribute_range_start, attribute_range_size,
                              attribute_memory_pool};
  void* values[] = {&facts.type,  &facts.device,     &facts.managed, &facts.ipc_capable,
                    &facts.start, &facts.size_bytes, &facts.pool};
  static_assert(std::size(names) == std::size(values));
  return driver.pointer_attributes(std::size(names), names, values, pointer);
}

bool is_device_memory(const PointerFacts& facts) {
  return facts.type == memory_device || facts.type == memory_unified ||
         (facts.managed != 0 && facts.type != MemoryType{});
}

// Memory of the virtual memory management calls may be made of many mappings that lie side by side
// (an expandable segment is), while the driver tells the range of one.
bool may_go_on(const PointerFacts& facts) {
  return facts.ipc_capable == 0 && facts.managed == 0 && facts.pool == nullptr;
}

// Where the piece of memory around the pointer ends; wanted: do not look further than that many
// bytes behind it.
DevicePointer end_of_piece(const Driver& driver, const PointerFacts& first, DevicePointer pointer,
                           std::uint64_t wanted) {
  DevicePointer end = first.start + first.size_bytes;
  while (end - pointer < wanted && may_go_on(first)) {
    PointerFacts next;
    if (ask(driver, end, next) != success || !is_device_memory(next) || !may_go_on(next) ||
        next.device != first.device || next.start != end || next.size_bytes == 0) {
      break;
    }
    end += next.size_bytes;
  }
  return end;
}

Error unusable(std::uint64_t size_bytes, std::string why, std::string advice) {
  return Error{.kind = ErrorKind::invalid_argument,
               .attempted = "use " + std::to_string(size_bytes) + " bytes of device memory",
               .path = {},
               .offset = {},
               .why = std::move(why),
               .advice = std::move(advice)};
}

}  // namespace

Result<std::optional<MemoryRange>> find_pointer(const Devices& devices, std::uint64_t address,
                                                std::uint64_t size_bytes) {
  if (auto parent = devices.check_fork("look a pointer up"); !parent) return parent.error();
  const Driver& driver = devices.driver();
  PointerFacts facts;
  const Status status = ask(driver, address, facts);
  // invalid_value: never seen by the driver, as the singular call says it.
  if (status == invalid_value) return std::optional<MemoryRange>();
  if (status != success) return driver_error(driver, status, "look a pointer up");
  if (!is_device_memory(facts)) return std::optional<MemoryRange>();
  // Managed memory may prefer the CPU; any device can copy it.
  if (facts.managed != 0 && facts.device < 0) facts.device = 0;
  if (facts.device < 0 || facts.device >= devices.count()) {
    return unusable(
        size_bytes,
        "it lies on device " + std::to_string(facts.device) + ", which this process does not see",
        "see CUDA_VISIBLE_DEVICES");
  }
  if (facts.size_bytes != 0) {
    const DevicePointer end = end_of_piece(driver, facts, address, size_bytes);
    if (end - address < size_bytes) {
      return unusable(size_bytes, "only " + std::to_string(end - address) + " bytes are there",
                      "give a smaller size, or larger memory");
    }
    return std::optional(
        MemoryRange{SpaceKind::cuda, facts.device, facts.start, end - facts.start});
  }
  // A driver that tells no range.
  if (size_bytes > std::numeric_limits<std::uint64_t>::max() - address) {
    return unusable(size_bytes, "the range ends beyond the address space", "check the size");
  }
  return std::optional(MemoryRange{SpaceKind::cuda, facts.device, address, size_bytes});
}

}  // namespace straightway::memory::cuda
