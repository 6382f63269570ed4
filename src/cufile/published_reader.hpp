#pragma once
// Reads what another process's libcufile.so.0 of ours publishes: hostile input.

#include <cstdint>
#include <memory>

#include "cufile/published.hpp"
#include "straightway/result.hpp"

namespace straightway::cufile {

// Of one process, with averages and the rates of the last whole second. Where several copies of the
// library are in it, their counters are added up. ErrorKind::not_found where it publishes none (or
// is gone), permission where it is another user's, unsupported where its layout is of another
// version, wrong_file_type where it only pretends to be one.
Result<std::unique_ptr<Published>> read_published(std::int64_t pid);

}  // namespace straightway::cufile
