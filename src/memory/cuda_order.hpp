#pragma once
// Order after the work that the user has queued.

#include <optional>

#include "memory/cuda_devices.hpp"

namespace straightway::memory::cuda {

// Space::wait_stream over the driver.
Result<void> wait_for_user(Devices& devices, int device, std::optional<void*> stream);

}  // namespace straightway::memory::cuda
