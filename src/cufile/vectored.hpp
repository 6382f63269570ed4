#pragma once
// cuFileReadv and cuFileWritev: one file range, several pieces of memory, of any kinds.

#include "cufile/transfer.hpp"

namespace straightway::cufile {

// In order of the pieces; stops where the file ends, or at an error behind bytes that moved.
Outcome run_vectored(Session& session, const Handle& handle, Flow flow, const abi::Piece* pieces,
                     std::size_t count, off_t file_offset);

}  // namespace straightway::cufile
