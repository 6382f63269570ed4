#include "plan/direct_paths.hpp"

#include <algorithm>

#include "plan/runs.hpp"

namespace straightway::plan {
namespace {

// File systems that hand an O_DIRECT request on to their device as it is; others copy, checksum or
// compress on the way.
bool hands_memory_on(const FileFacts& file) {
  return file.is_block_device || file.filesystem == "ext4" || file.filesystem == "xfs";
}

Reason device_stack_refusal(const FileFacts& file) {
  if (file.is_network || file.device.empty()) return Reason::no_block_device;
  if (!takes_peer_memory(file)) return Reason::no_peer_memory;
  if (file.direct_offset_align_bytes == 0) return Reason::no_direct_io;
  return Reason::none;
}

// std::has_single_bit counts all bits, by a call into the compiler's library on plain x86-64.
bool is_power_of_two(std::uint32_t number) { return number != 0 && (number & (number - 1)) == 0; }

bool built(Route route, const MachineFacts& machine) {
  return (machine.routes_built >> index(route) & 1U) != 0;
}

Reason nvfs_refusal(const FileFacts& file, const MachineFacts& machine) {
  if (!machine.nvfs_loaded) return Reason::nvfs_not_loaded;
  if (!machine.vendor_library) return Reason::vendor_library_absent;
  if (const Reason reason = device_stack_refusal(file); reason != Reason::none) return reason;
  return built(Route::nvfs, machine) ? Reason::none : Reason::route_not_built;
}

// Whether pages are published is looked up only by a build that could use them.
Reason p2pdma_refusal(const FileFacts& file, const MachineFacts& machine) {
  if (const Reason reason = device_stack_refusal(file); reason != Reason::none) return reason;
  if (!built(Route::p2pdma, machine)) return Reason::route_not_built;
  return machine.p2pdma_pages ? Reason::none : Reason::not_published;
}

}  // namespace

bool takes_peer_memory(const FileFacts& file) {
  return file.device_driver == "nvme" && hands_memory_on(file);
}

Reason direct_refusal(Route route, const FileFacts& file, const MachineFacts& machine) {
  return route == Route::nvfs ? nvfs_refusal(file, machine) : p2pdma_refusal(file, machine);
}

Reason device_refusal(std::int32_t device, const MachineFacts& machine) {
  const bool there = machine.cuda_driver && device >= 0 && device < machine.cuda_devices;
  return there ? Reason::none : Reason::no_gpu;
}

std::uint32_t direct_block_bytes(const FileFacts& file, const MachineFacts& machine) {
  const std::uint32_t offset_align = file.direct_offset_align_bytes;
  const std::uint32_t memory_align = std::max(1U, file.direct_memory_align_bytes);
  const std::uint32_t page_bytes = machine.page_bytes == 0 ? 4096 : machine.page_bytes;
  const std::uint32_t widest = std::max({page_bytes, offset_align, memory_align});
  const bool powers_of_two =
      is_power_of_two(offset_align) && is_power_of_two(memory_align) && is_power_of_two(page_bytes);
  return powers_of_two && widest <= direct_segment_bytes ? widest : 0;
}

}  // namespace straightway::plan
