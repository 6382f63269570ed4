#pragma once

#include <cstddef>

namespace straightway::os {

// Whether this process can read the first and the last byte there; asks the kernel, once, so a bad
// address cannot fault. size_bytes > 0.
bool is_readable(const void* address, std::size_t size_bytes);

}  // namespace straightway::os
