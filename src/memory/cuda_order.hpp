#pragma once
// Order after the work that the user has queued.

#include <memory>
#include <optional>

#include "memory/cuda_devices.hpp"
#include "memory/space.hpp"

namespace straightway::memory::cuda {

// Space::mark_stream over the driver.
Result<std::unique_ptr<Mark>> mark_stream(const std::shared_ptr<Devices>& devices, int device,
                                          std::optional<void*> stream);

}  // namespace straightway::memory::cuda
