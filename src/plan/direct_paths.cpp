#include "plan/direct_paths.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "plan/runs.hpp"

namespace straightway::plan {
namespace {

using Version = std::pair<int, int>;
// User pages of O_DIRECT may be peer memory from here on.
constexpr Version first_kernel{6, 2};
// dma_direct_map_sg lacks a fallthrough there: through the host's bridge the drive gets address 0,
// and the read "succeeds".
constexpr Version broken_kernel{6, 16};

// "7.3.4+deb13-cloud-amd64"
std::optional<Version> version_of(const std::string& kernel) {
  Version version;
  const char* end = kernel.data() + kernel.size();
  const auto [dot, first] = std::from_chars(kernel.data(), end, version.first);
  if (first != std::errc() || dot == end || *dot != '.') return std::nullopt;
  const auto [rest, second] = std::from_chars(dot + 1, end, version.second);
  return second == std::errc() ? std::optional(version) : std::nullopt;
}

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

// "2.28.4"; what is no number counts as 0.
std::array<std::uint32_t, 3> numbers_of(const std::string& version) {
  std::array<std::uint32_t, 3> numbers{};
  const char* at = version.data();
  const char* const end = at + version.size();
  for (std::uint32_t& number : numbers) {
    at = std::from_chars(at, end, number).ptr;
    if (at == end || *at != '.') break;
    ++at;
  }
  return numbers;
}

// The oldest that the vendor's library takes, and one that is known to be broken. An unknown
// version is left to the library.
bool is_bad_nvfs(const std::string& version) {
  constexpr std::array<std::uint32_t, 3> oldest{2, 12, 0};
  constexpr std::array<std::uint32_t, 3> broken{2, 25, 6};
  const auto numbers = numbers_of(version);
  return !version.empty() && (numbers < oldest || numbers == broken);
}

bool is_nvfs_usable(const MachineFacts& machine) {
  return machine.nvfs_loaded && machine.nvfs_nodes && !is_bad_nvfs(machine.nvfs_version);
}

void add(Lacking& lacking, bool lacks, Reason reason) {
  if (lacks && lacking.count < lacking.reasons.size()) lacking.reasons[lacking.count++] = reason;
}

// What both ways through the vendor's library ask of it, and of the machine.
void add_vendor(Lacking& lacking, const MachineFacts& machine) {
  add(lacking, !machine.vendor_library, Reason::vendor_library_absent);
  add(lacking, !machine.vendor_why_not.empty(), Reason::vendor_unusable);
  add(lacking, !machine.run_udev, Reason::no_udev);
}

void add_nvfs_machine(Lacking& lacking, const MachineFacts& machine) {
  add(lacking, machine.wsl, Reason::on_wsl);
  add(lacking, !machine.nvfs_loaded, Reason::nvfs_not_loaded);
  add(lacking, is_bad_nvfs(machine.nvfs_version), Reason::nvfs_bad_version);
  add(lacking, machine.nvfs_loaded && !machine.nvfs_nodes, Reason::nvfs_no_nodes);
  add_vendor(lacking, machine);
}

// The file's device, and what the library answered of it.
void add_file(Lacking& lacking, const FileFacts& file) {
  const Reason reason = device_stack_refusal(file);
  add(lacking, reason != Reason::none, reason);
  add(lacking, file.vendor_code != 0, Reason::vendor_refused);
  add(lacking, file.vendor_copies, Reason::vendor_copies);
}

Lacking lacking_for_nvfs(const FileFacts& file, const MachineFacts& machine) {
  Lacking lacking;
  add_nvfs_machine(lacking, machine);
  add(lacking, machine.nvfs_loaded && vendor_route(machine) == Route::p2pdma,
      Reason::not_preferred);
  add_file(lacking, file);
  add(lacking, !built(Route::nvfs, machine), Reason::route_not_built);
  return lacking;
}

// GPU, BAR1 and the kind of the GPU's driver are left to the library. With nvidia-fs it goes by
// that, unless it is told otherwise: then no pages are published for it.
Lacking lacking_for_p2pdma(const FileFacts& file, const MachineFacts& machine) {
  constexpr std::int32_t first_library = 1130;
  Lacking lacking;
  add(lacking, machine.wsl, Reason::on_wsl);
  const Reason kernel = kernel_refusal(machine);
  add(lacking, kernel != Reason::none, kernel);
  if (is_nvfs_usable(machine)) {
    add(lacking, !machine.p2pdma_pages, Reason::not_preferred);
  } else {  // without the library nobody looked for them
    add(lacking, machine.vendor_library && !machine.p2pdma_pages, Reason::not_published);
  }
  add_vendor(lacking, machine);
  const auto version = machine.vendor_version;
  add(lacking, version != 0 && version < first_library, Reason::vendor_unusable);
  add_file(lacking, file);
  add(lacking, !built(Route::p2pdma, machine), Reason::route_not_built);
  return lacking;
}

}  // namespace

bool has_nvfs(const MachineFacts& machine) {
  Lacking lacking;
  add_nvfs_machine(lacking, machine);
  return lacking.count == 0 && built(Route::nvfs, machine);
}

bool wants_p2pdma(const MachineFacts& machine, bool asked) {
  return asked || !is_nvfs_usable(machine);
}

Route vendor_route(const MachineFacts& machine) {
  const bool takes_pages =
      machine.p2pdma_pages && kernel_refusal(machine) != Reason::kernel_without_p2pdma;
  return takes_pages ? Route::p2pdma : Route::nvfs;
}

// A trial itself would do harm on the broken kernel, so one of unknown version is not tried.
Reason kernel_refusal(const MachineFacts& machine) {
  const auto version = version_of(machine.kernel);
  if (!version || *version < first_kernel) return Reason::kernel_without_p2pdma;
  return *version == broken_kernel ? Reason::kernel_breaks_p2pdma : Reason::none;
}

bool takes_peer_memory(const FileFacts& file) {
  return file.device_driver == "nvme" && hands_memory_on(file);
}

Lacking lacking_for(Route route, const FileFacts& file, const MachineFacts& machine) {
  return route == Route::nvfs ? lacking_for_nvfs(file, machine) : lacking_for_p2pdma(file, machine);
}

Reason direct_refusal(Route route, const FileFacts& file, const MachineFacts& machine) {
  return lacking_for(route, file, machine).reasons[0];
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
