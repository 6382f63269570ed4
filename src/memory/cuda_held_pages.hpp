#pragma once
// Pages of the page cache, registered read-only with the driver.

#include <memory>

#include "memory/cuda_devices.hpp"
#include "memory/space.hpp"

namespace straightway::memory::cuda {

// As Space::can_hold_pages and Space::hold_pages.
Result<void> can_hold_pages(Devices& devices, int device);
Result<std::unique_ptr<HeldPages>> hold_pages(const std::shared_ptr<Devices>& devices, int device,
                                              void* pages, std::size_t size_bytes);

}  // namespace straightway::memory::cuda
