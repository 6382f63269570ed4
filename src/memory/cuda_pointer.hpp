#pragma once
// What the driver knows of a pointer.

#include <optional>

#include "memory/cuda_devices.hpp"
#include "straightway/facts.hpp"

namespace straightway::memory::cuda {

// Space::find over the driver.
Result<std::optional<MemoryRange>> find_pointer(const Devices& devices, std::uint64_t address,
                                                std::uint64_t size_bytes);

}  // namespace straightway::memory::cuda
