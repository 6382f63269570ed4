// The sentence for each reason, in words of the facts at hand.

#include <fmt/format.h>
#include <string.h>

#include "plan/direct_paths.hpp"
#include "plan/planner.hpp"
#include "plan/runs.hpp"
#include "plan/units.hpp"

namespace straightway::plan {
namespace {

struct Words {
  const FileFacts& file;
  const MachineFacts& machine;
  const Settings& settings;
  Route route;
  const PeerFacts* peer;
};

std::string filesystem(const Words& words) {
  const std::string& name = words.file.filesystem;
  return name.empty() || name == "unknown" ? "this file system" : name;
}

std::string device_name(const Words& words) {
  return words.file.device.empty() ? "the device under this file" : words.file.device;
}

std::string no_peer_memory(const Words& words) {
  const std::string& driver = words.file.device_driver;
  if (driver == "nvme") {
    return fmt::format("{} on {} is not known to hand device memory on to its disk",
                       filesystem(words), device_name(words));
  }
  if (driver == "md" || driver == "device-mapper") {
    return fmt::format("{} is {}, a stack that is not known to take peer memory",
                       device_name(words), driver);
  }
  if (driver.empty()) {
    return fmt::format("{} has a driver that is not known to take peer memory", device_name(words));
  }
  return fmt::format("{} is {}, which takes no peer memory", device_name(words), driver);
}

std::string no_block_device(const Words& words) {
  if (words.file.is_network) {
    return fmt::format("{} is a network file system, it has no local block device",
                       filesystem(words));
  }
  return fmt::format("{} has no local block device", filesystem(words));
}

std::string no_direct_io(const Words& words) {
  if (words.file.direct_offset_align_bytes == 0) {
    return fmt::format("{} refuses direct I/O (O_DIRECT)", filesystem(words));
  }
  return fmt::format(
      "direct I/O here asks for an alignment of {} to offset and {} to memory, "
      "which no segment has",
      format_bytes(words.file.direct_offset_align_bytes),
      format_bytes(words.file.direct_memory_align_bytes));
}

std::uint64_t memory_align(const Words& words) {
  return words.file.direct_memory_align_bytes != 0 ? words.file.direct_memory_align_bytes
                                                   : words.file.direct_offset_align_bytes;
}

std::string no_gpu(const Words& words) {
  if (words.machine.cuda_driver && words.machine.cuda_devices > 0) {
    return fmt::format("there is no such device, the CUDA driver knows {}",
                       words.machine.cuda_devices);
  }
  if (words.machine.cuda_driver) return "the CUDA driver finds no GPU";
  const std::string& why = words.machine.cuda_why_not;
  return why.empty() ? "there is no CUDA driver" : fmt::format("there is no CUDA driver ({})", why);
}

std::string no_vendor_library(const Words& words) {
  const Setting<std::string>& named = words.settings.vendor_library;
  if (named.value.empty()) return "no libcufile.so.0 of NVIDIA's was found";
  const char* origin = to_string(named.origin);
  if (named.value == "none") {
    return fmt::format("NVIDIA's libcufile is left alone (vendor_library=none, {})", origin);
  }
  return fmt::format("'{}' is no libcufile.so.0 of NVIDIA's (vendor_library, {})", named.value,
                     origin);
}

std::string compat_mode_auto(const Words& words) {
  const std::string lead = "compat_mode is AUTO, and cuFile is not usable here: ";
  if (!words.machine.vendor_library) return lead + "no libcufile.so.0 was found";
  if (!words.machine.run_udev) return lead + "there is no directory /run/udev";
  if (words.machine.wsl) return lead + "this is WSL";
  if (words.file.direct_offset_align_bytes == 0) return lead + no_direct_io(words);
  return lead + "it does not register this file";
}

std::string kernel(const Words& words) {
  return words.machine.kernel.empty() ? "a kernel of unknown version"
                                      : "kernel " + words.machine.kernel;
}

std::string peer_device(const Words& words) {
  const bool named = words.peer != nullptr && !words.peer->device.empty();
  return named ? "PCI device " + words.peer->device : "this device";
}

std::string peer_refused(const Words& words) {
  const int code = words.peer == nullptr ? 0 : words.peer->trial_code;
  const char* name = code == 0 ? nullptr : ::strerrorname_np(code);
  const bool apart = words.peer != nullptr && words.peer->bridge == PeerBridge::host_bridge;
  return fmt::format(
      "the kernel refused direct I/O from {} to the memory of {} when it was tried{}"
      "{}",
      device_name(words), peer_device(words), name == nullptr ? "" : fmt::format(" ({})", name),
      apart ? "; they lie below different ports of the host, which may not forward" : "");
}

// " 1.15", or nothing before it was loaded.
std::string vendor_version(const Words& words) {
  const int version = words.machine.vendor_version;
  return version == 0 ? "" : fmt::format(" {}.{}", version / 1000, version % 1000 / 10);
}

// An errno, or one of cuFile's codes, which lie above.
std::string code_text(int code) {
  const char* name = ::strerrorname_np(code);
  return name != nullptr ? name : fmt::format("cuFile code {}", code);
}

std::string policy_forbids(const Words& words) {
  return fmt::format("the policy {} rules it out", to_string(words.settings.policy.value));
}

// Which of its two ways the vendor's library goes, where that is why the other is not taken.
std::string other_vendor_way(const Words& words) {
  if (!words.machine.nvfs_loaded || words.peer != nullptr) return {};
  if (words.route == Route::p2pdma && !words.machine.p2pdma_pages) {
    return "NVIDIA's libcufile goes by nvidia-fs here (CUFILE_USE_PCIP2PDMA=true switches P2PDMA "
           "on, which goes first where a GPU's pages are published)";
  }
  if (words.route == Route::nvfs && vendor_route(words.machine) == Route::p2pdma) {
    return "NVIDIA's libcufile has P2PDMA switched on, which goes before nvidia-fs";
  }
  return {};
}

std::string not_preferred(const Words& words) {
  if (auto text = other_vendor_way(words); !text.empty()) return text;
  switch (words.route) {
    case Route::direct_host:
      return "possible, but it reads the disk even where the page cache has the bytes";
    case Route::nvfs:
    case Route::p2pdma:
      return "possible, but bytes that the page cache keeps go through it (policy=direct asks for "
             "it)";
    default:
      return "possible, but another route is faster here";
  }
}

std::string not_kept(const Words& words) {
  const Cache cache = words.settings.cache.value;
  if (cache != Cache::automatic) return fmt::format("not to be kept (cache={})", to_string(cache));
  return "more than half of the memory to spare";
}

std::string kept(const Words& words) {
  return std::string("kept in the page cache") +
         (words.settings.cache.value == Cache::keep
              ? " (cache=keep)"
              : ", where they fit well: the next read is hot");
}

std::string chosen(Reason reason, const Words& words) {
  const FrontSettings& front = words.settings.front;
  switch (reason) {
    case Reason::host_memory:
      return "for host memory the page-cache copy is the fastest way";
    case Reason::device_memory:
      return "device memory is reached through a pinned ring here";
    case Reason::small_request:
      return fmt::format("below {}, where a hand-off to other threads costs more than the copy",
                         format_bytes(small_request_bytes));
    case Reason::policy_staged:
      return "the caller asked for it (policy=staged)";
    case Reason::policy_direct:
      return "the caller asked for it (policy=direct)";
    case Reason::cache_bypass:
      return "the caller asked to keep out of the page cache (cache=bypass)";
    case Reason::edge_block:
      return "an edge shorter than one block of direct I/O";
    case Reason::residency_unknown:
      return "whether the page cache has the bytes is not known, and buffered is never wrong";
    case Reason::cold_kept:
      return kept(words);
    case Reason::cold_dropped:
      return not_kept(words) + ", so the page cache lets go of them at once (RWF_DONTCACHE)";
    case Reason::cold_direct:
      return not_kept(words) + ", so they pass by the page cache (O_DIRECT)";
    case Reason::cold_trimmed:
      return not_kept(words) + ", so they are dropped from the page cache after the copy";
    case Reason::direct_available:
      return "every prerequisite of the direct route is there";
    case Reason::compat_mode_on:
      return "compat_mode is ON, so cuFile is not used";
    case Reason::compat_mode_auto:
      return compat_mode_auto(words);
    case Reason::below_gds_threshold:
      return fmt::format("smaller than gds_threshold ({}), so POSIX on the caller's thread",
                         format_bytes(front.gds_threshold_bytes.value));
    case Reason::front_host_memory:
      return "host memory goes through POSIX, whatever the settings";
    case Reason::front_tasks:
      return fmt::format("device memory goes to cuFile in tasks of task_size ({})",
                         format_bytes(front.task_size_bytes.value));
    case Reason::force_compat:
      return "force_compat_mode is true, so everything goes through POSIX";
    case Reason::allow_compat:
      return "there is no direct path, and allow_compat_mode permits POSIX";
    case Reason::cufile_host_memory:
      return "cuFile moves host memory in one piece, through POSIX";
    case Reason::unaligned:
      return "no part has offset and length that are multiples of 4096";
    case Reason::fell_back:
      return "a direct attempt failed, and the bytes went another way";
    case Reason::peer_direct:
      return "the drive reaches the device's memory, which was tried here";
    case Reason::peer_untried:
      return "nothing known speaks against it; one block is tried before the others";
    case Reason::peer_copied:
      return "the CPU copies through the mapping of the device's memory";
    case Reason::pinned:
      return "the pages are pinned, so the GPU reads the page cache itself";
    case Reason::pin_lost:
      return words.route == Route::pinned_cache
                 ? "the pin was given up, because the file changed; pin it again"
                 : "the pin ended, or the file changed, before these bytes were read";
    default:
      return {};
  }
}

// What the way through the vendor's library lacks.
std::string vendor_refused(Reason reason, const Words& words) {
  switch (reason) {
    case Reason::nvfs_not_loaded:
      return "nvidia-fs is not loaded (no /proc/driver/nvidia-fs)";
    case Reason::vendor_library_absent:
      return no_vendor_library(words);
    case Reason::on_wsl:
      return "this is WSL, where NVIDIA's libcufile ends the program";
    case Reason::nvfs_bad_version:
      return fmt::format("nvidia-fs {} does not work; install 2.25.7 or newer",
                         words.machine.nvfs_version);
    case Reason::nvfs_no_nodes:
      return "nvidia-fs has no device node /dev/nvidia-fs0 for this process";
    case Reason::no_udev:
      return "there is no directory /run/udev, which NVIDIA's libcufile asks for";
    case Reason::vendor_unusable:
      return fmt::format("NVIDIA's libcufile{} cannot be used: {}", vendor_version(words),
                         words.machine.vendor_why_not.empty() ? "P2PDMA came with 1.13"
                                                              : words.machine.vendor_why_not);
    case Reason::vendor_refused:
      return fmt::format("NVIDIA's libcufile{} refused this file ({})", vendor_version(words),
                         code_text(words.file.vendor_code));
    case Reason::vendor_copies:
      return fmt::format("NVIDIA's libcufile{} takes this file and copies through host memory",
                         vendor_version(words));
    default:
      return {};
  }
}

std::string refused(Reason reason, const Words& words) {
  switch (reason) {
    case Reason::space_is_host:
      return "only for device memory, and this is host memory";
    case Reason::space_is_device:
      return "only for host memory, and this is device memory";
    case Reason::no_peer_memory:
      return no_peer_memory(words);
    case Reason::no_block_device:
      return no_block_device(words);
    case Reason::not_published:
      return words.peer != nullptr ? "the kernel publishes no pages for this device memory"
                                   : "no GPU's memory is published here (no PCI device of vendor "
                                     "0x10de in /sys/bus/pci/devices has a p2pmem/size above 0, "
                                     "or CONFIG_PCI_P2PDMA or use_pci_p2pdma is off)";
    case Reason::kernel_without_p2pdma:
      return fmt::format("{} does not lend device memory to direct I/O, Linux 6.2 and newer do",
                         kernel(words));
    case Reason::kernel_breaks_p2pdma:
      return fmt::format("{} may send such transfers to physical address 0; use 6.17 or newer",
                         kernel(words));
    case Reason::peer_refused:
      return peer_refused(words);
    case Reason::peer_data_lost:
      return fmt::format(
          "{} reported success when it was tried, and the bytes were not in the "
          "memory of {}",
          device_name(words), peer_device(words));
    case Reason::peer_not_tried:
      return "it was never tried here, and a trial on this range could harm other bytes";
    case Reason::peer_holes:
      return "the range has holes, or blocks never written, which the CPU fills with zeros";
    case Reason::peer_needs_no_ring:
      return "the CPU reaches this memory by itself, and no copy engine of it is known";
    case Reason::route_not_built:
      return fmt::format("this build of Straightway has no transport for {}",
                         to_string(words.route));
    case Reason::no_direct_io:
      return no_direct_io(words);
    case Reason::memory_misaligned:
      return fmt::format(
          "direct I/O would need the memory's address and the file offset to agree "
          "modulo {}",
          format_bytes(memory_align(words)));
    case Reason::request_too_small:
      return fmt::format("the request holds no whole block of direct I/O ({})",
                         format_bytes(direct_block_bytes(words.file, words.machine)));
    case Reason::not_pinned:
      return "the file's pages were not pinned (File::pin)";
    case Reason::pinned_for_reads:
      return "pinned pages serve reads only";
    case Reason::not_preferred:
      return not_preferred(words);
    case Reason::policy_forbids:
      return policy_forbids(words);
    case Reason::write_extends:
      return "a write that extends the file or is unaligned cannot go through O_DIRECT as it is";
    case Reason::no_gpu:
      return no_gpu(words);
    case Reason::refused_compat:
      return "there is no direct path, and allow_compat_mode is false";
    case Reason::range_too_large:
      return "offset plus size is beyond 2^63 - 1, where no file reaches";
    default:
      return vendor_refused(reason, words);
  }
}

}  // namespace

std::string sentence(Reason reason, Route route, const FileFacts* file, const MachineFacts* machine,
                     const Settings* settings, const PeerFacts* peer) {
  static const FileFacts no_file{};
  static const MachineFacts no_machine{};
  static const Settings no_settings{};
  const Words words{file ? *file : no_file, machine ? *machine : no_machine,
                    settings ? *settings : no_settings, route, peer};
  if (reason == Reason::none) return "no reason was recorded";
  std::string text = chosen(reason, words);
  if (text.empty()) text = refused(reason, words);
  return text.empty() ? "a reason that this version does not know" : text;
}

}  // namespace straightway::plan
