#pragma once
// Which direct routes into device memory the facts allow, and what direct I/O on a file asks for.

#include <array>
#include <cstddef>
#include <cstdint>

#include "straightway/facts.hpp"
#include "straightway/route.hpp"

namespace straightway::plan {

// The prerequisites of a direct route that are not there, in the order of mending them.
struct Lacking {
  std::array<Reason, 12> reasons{};
  std::size_t count = 0;
};
Lacking lacking_for(Route route, const FileFacts& file, const MachineFacts& machine);

// Whether this machine has all that nvfs asks of it, whatever the file.
bool has_nvfs(const MachineFacts& machine);

// Whether the vendor's library is told to go by P2PDMA: its switch is one for the whole process,
// and goes before nvidia-fs. asked: by the user's own settings of cuFile.
bool wants_p2pdma(const MachineFacts& machine, bool asked);

// The way that the vendor's library goes here. A kernel that is too old for P2PDMA leaves it
// nvidia-fs, also where P2PDMA is switched on.
Route vendor_route(const MachineFacts& machine);

// Why the kernel cannot lend published device memory to direct I/O; none: it can.
Reason kernel_refusal(const MachineFacts& machine);

// Why nvfs or p2pdma cannot serve this file here; none: every prerequisite is there.
Reason direct_refusal(Route route, const FileFacts& file, const MachineFacts& machine);

// Why device memory cannot be reached at all: no driver, no such device; none: it can.
Reason device_refusal(std::int32_t device, const MachineFacts& machine);

// Whether the kernel's driver of a block device is known to accept device memory as a target.
bool takes_peer_memory(const FileFacts& file);

// File offsets where direct and buffered I/O may meet: multiples of the page and of what O_DIRECT
// asks of offset and memory. A power of two; 0: no direct I/O on this file.
std::uint32_t direct_block_bytes(const FileFacts& file, const MachineFacts& machine);

}  // namespace straightway::plan
