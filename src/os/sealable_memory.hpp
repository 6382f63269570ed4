#pragma once
// Memory behind a descriptor that can be sealed, for other processes to read.

#include "os/descriptor.hpp"

namespace straightway::os {

// A memfd of this name, empty; none, with errno, where the machine has no more or refuses.
Descriptor create_sealable_memory(const char* name);

}  // namespace straightway::os
