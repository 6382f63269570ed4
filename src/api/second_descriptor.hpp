#pragma once
// O_DIRECT runs need a file's second descriptor, which the system may refuse though the file's
// facts promise it.

#include "api/open_file.hpp"
#include "straightway/plan.hpp"
#include "straightway/receipt.hpp"

namespace straightway {

bool may_fall_back(const Plan& plan);
bool uses_direct(const Plan& plan);
// Opens it if the plan needs it. Where it cannot be had the runs go through the page cache, or it
// is an error, as the policy says.
Result<void> secure_direct(Plan& plan, OpenFile& file);
// The fallbacks that were taken so, before anything moved.
void count_refused_direct(Receipt& receipt, const Plan& plan, const OpenFile& file);

}  // namespace straightway
