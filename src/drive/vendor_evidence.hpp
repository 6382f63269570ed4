#pragma once
// What counters say of the transfers that the vendor's library made between two looks. Pure.

#include <cstdint>

#include "transport/cufile_library.hpp"

namespace straightway::drive {

enum class CufileSaid : std::uint8_t {
  nothing,          // no counter matches exactly what our calls claim, which proves nothing
  kernel_counted,   // nvidia-fs counted exactly our calls and their bytes
  library_counted,  // the library counted all calls as direct, and as many as ours at least
  p2pdma_counted,   // the same, and all of them by P2PDMA
  copied,           // it counted calls of ours as posix, or none as direct, or nvidia-fs saw none
};

// own_bytes: what the request that asks moved by the library. Where all calls of ours between the
// looks moved more, other requests' are among them.
CufileSaid what_counters_say(const transport::CufileCounts& before,
                             const transport::CufileCounts& after, std::uint64_t own_bytes);

}  // namespace straightway::drive
