#pragma once
// What a call ends in: a refusal before anything moved, or a receipt that meets its demands.

#include <cstdint>

#include "api/open_file.hpp"
#include "straightway/file.hpp"

namespace straightway {

// Why nothing of the plan can be done as asked, with each refused route.
Error refusal(const Plan& plan);
// The receipt as far as the plan knows it.
Receipt begin_receipt(const Plan& plan, std::uint64_t queued_ns);
// The demands that can only be judged once everything has moved: exact, evidence.
Result<Receipt> judge_receipt(Receipt receipt, const CallOptions& options);
// Makes what was written through fd as durable as asked.
Result<void> sync_file(const os::Syscalls& syscalls, const OpenFile& file, Sync sync, int fd);

}  // namespace straightway
