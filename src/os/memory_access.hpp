#pragma once

namespace straightway::os {

// Whether this process can read a byte there; asks the kernel, so a bad address cannot fault.
bool is_readable(const void* address);

}  // namespace straightway::os
