#pragma once
// Files of a file system in user space: its own functions move the bytes, here to or from host
// memory; for device memory they go through pinned memory.

#include "cufile/transfer.hpp"

namespace straightway::cufile {

// Blocking.
Outcome move_userspace(Session& session, const Handle& handle, const Transfer& transfer,
                       const Checked& checked);

}  // namespace straightway::cufile
