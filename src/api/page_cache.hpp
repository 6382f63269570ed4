#pragma once
// What plans and transfers are told of the page cache, and of the memory that it may take.

#include "api/open_file.hpp"
#include "drive/transfer.hpp"
#include "plan/cold.hpp"
#include "straightway/plan.hpp"

namespace straightway {

// What there is to spare for the page cache; UINT64_MAX where it is not known or nothing depends on
// it. largest_bytes: of the call's ranges; small ones cost no look.
std::uint64_t spare_memory(Direction direction, std::uint64_t largest_bytes,
                           const Settings& settings);

// What the page cache has of the range.
plan::Look look_at_cache(const os::Syscalls& syscalls, int fd, const FileRange& range);

// Gives a transfer its looks into the page cache. syscalls outlives it.
void use_page_cache(drive::TransferSpec& spec, const os::Syscalls& syscalls);

}  // namespace straightway
