#pragma once
// The words of the design as types: directions, routes, policies, and the reasons that a plan and a
// receipt give. Everything here is a value.

#include <array>
#include <cstddef>
#include <cstdint>

namespace straightway {

enum class Direction : std::uint8_t { read, write };

// How a segment travels.
enum class Route : std::uint8_t {
  nvfs,          // storage DMA into GPU memory through nvidia-fs, by the vendor's libcufile
  p2pdma,        // storage DMA into device memory whose pages the kernel publishes
  direct_host,   // storage DMA into the caller's host memory (O_DIRECT)
  pinned_cache,  // the copy engine reads page-cache pages that the user asked to keep registered
  staged,    // through a pinned ring: pread or O_DIRECT on one side, the copy engine on the other
  buffered,  // into host memory: the plain page-cache copy
};
inline constexpr std::size_t route_count = 6;
inline constexpr std::array<Route, route_count> all_routes = {
    Route::nvfs,         Route::p2pdma, Route::direct_host,
    Route::pinned_cache, Route::staged, Route::buffered};

// What the caller allows. direct: nvfs or p2pdma for device memory, direct_host for host memory,
// else the call fails with the reason (edges shorter than one block may be staged, and are shown).
enum class Policy : std::uint8_t { automatic, direct, staged };

// What becomes of the page cache. automatic keeps what fits well within spare memory.
enum class Cache : std::uint8_t { automatic, keep, drop, bypass };

// Demand on the evidence of a receipt. any: a library's word is enough.
enum class Demand : std::uint8_t { any, observed };

// How durable a write is when the call returns: nothing, fdatasync, fsync.
enum class Sync : std::uint8_t { none, data, full };

// The interface that a request came through; the KvikIO and cuFile doors keep their documented
// rules, Straightway's own uses the auto policy.
enum class Door : std::uint8_t { straightway, kvikio, cufile };

// peer: memory of a PCI device whose pages the kernel publishes, mapped into this process
// (straightway/peer.hpp).
enum class SpaceKind : std::uint8_t { host, cuda, peer };

// Where a setting came from, highest precedence first.
enum class Origin : std::uint8_t { call, api, environment, file, built_in };

// Why a route was chosen, or refused. The sentence for each stands in src/plan/reasons.cpp.
enum class Reason : std::uint8_t {
  none,
  // Chosen.
  host_memory,          // host memory: the page-cache copy is the fastest way
  device_memory,        // device memory and no direct route here
  small_request,        // so small that a hand-off costs more than the copy
  policy_staged,        // the caller asked for it
  policy_direct,        // the caller asked for it
  cache_bypass,         // the caller asked to keep out of the page cache
  edge_block,           // head or tail shorter than one direct-I/O block
  residency_unknown,    // residency not known: buffered is never wrong
  cold_kept,            // cold bytes: kept in the page cache
  cold_dropped,         // cold bytes: through the page cache, which lets go of them at once
  cold_direct,          // cold bytes: O_DIRECT, past the page cache
  cold_trimmed,         // cold bytes: through the page cache, from which they are dropped after it
  direct_available,     // every prerequisite of the direct route is there
  compat_mode_on,       // front layer: compat_mode is ON
  compat_mode_auto,     // front layer: AUTO, and cuFile is not usable here
  below_gds_threshold,  // front layer: size < gds_threshold
  front_host_memory,    // front layer: host memory goes POSIX
  front_tasks,          // front layer: cuFile, in tasks
  force_compat,         // cuFile layer: force_compat_mode
  allow_compat,         // cuFile layer: no direct path, and allow_compat_mode permits POSIX
  cufile_host_memory,   // cuFile layer: host memory is read in one piece, by POSIX
  unaligned,            // cuFile layer: offset or length not a multiple of 4096
  fell_back,            // a direct attempt failed with a listed error; see the fallback's code
  peer_direct,          // peer memory: storage DMA into it was tried here, and works
  peer_untried,         // peer memory: every known prerequisite is there; one block is tried first
  peer_copied,          // peer memory: the CPU copies through its mapping
  pinned,               // the pages are pinned: no CPU copy, no ring
  // Refused.
  space_is_host,          // the route moves bytes into device memory; this is host memory
  space_is_device,        // the route moves bytes into host memory; this is device memory
  nvfs_not_loaded,        // no /proc/driver/nvidia-fs
  vendor_library_absent,  // no libcufile.so.0 of the vendor was found
  no_peer_memory,         // the device stack under the file takes no peer memory
  no_block_device,        // the file system has no local block device (tmpfs, network, overlay)
  not_published,          // the kernel publishes no pages for this device memory
  kernel_without_p2pdma,  // too old to lend published pages to O_DIRECT, or of unknown version
  kernel_breaks_p2pdma,   // 6.16: its peer transfers may go to physical address 0
  peer_refused,           // the kernel refused storage DMA into this memory when it was tried
  peer_data_lost,         // the drive reported success, and the bytes were not there
  peer_not_tried,         // it could not be tried without touching bytes of others
  peer_holes,             // the range has holes, which the CPU fills under O_DIRECT too
  peer_needs_no_ring,     // the CPU reaches peer memory itself
  route_not_built,        // this build has no transport for the route
  no_direct_io,           // the file system refuses O_DIRECT
  memory_misaligned,      // the memory's alignment does not fit the file's direct-I/O alignment
  request_too_small,      // shorter than one direct-I/O block
  not_pinned,             // the file's pages were not pinned by File::pin
  pin_lost,               // the pin ended or was given up (the file changed); chosen and refused
  pinned_for_reads,       // pinned pages serve reads only
  not_preferred,          // possible, but slower here than the chosen one
  policy_forbids,         // the policy rules it out
  write_extends,          // an extending or unaligned write cannot go O_DIRECT as it is
  no_gpu,                 // no CUDA driver, or no device
  refused_compat,         // cuFile layer: no direct path, and allow_compat_mode is false
  range_too_large,        // offset + size is beyond 2^63 - 1, where no file reaches
  on_wsl,                 // the vendor's library ends the program there
  nvfs_bad_version,       // a version of nvidia-fs that is known not to work
  nvfs_no_nodes,          // no /dev/nvidia-fs* for this process
  no_udev,                // no /run/udev, which the vendor's library asks for
  vendor_unusable,        // the vendor's library was loaded, and is not fit for a direct path
  vendor_refused,         // it refused this file, or transfers of its storage
  vendor_copies,          // it copied through host memory in silence; chosen and refused
};
inline constexpr std::size_t reason_count = static_cast<std::size_t>(Reason::vendor_copies) + 1;

const char* to_string(Direction direction);
const char* to_string(Route route);    // "direct-host", as users and statistics write it
const char* to_string(Policy policy);  // "auto", "direct", "staged"
const char* to_string(Cache cache);    // "auto", "keep", "drop", "bypass"
const char* to_string(Demand demand);
const char* to_string(Sync sync);
const char* to_string(Door door);
const char* to_string(SpaceKind space);
const char* to_string(Origin origin);  // "call", "api", "environment", "file", "default"
const char* to_string(Reason reason);  // the code, "nvfs-not-loaded"

constexpr std::size_t index(Route route) { return static_cast<std::size_t>(route); }

}  // namespace straightway
