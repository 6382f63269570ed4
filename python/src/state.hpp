#pragma once
// Plans and receipts as bytes and back, for pickling. Every field counts, so what comes back
// compares equal. The bytes belong to one version of Straightway; to_json() is for keeping.

#include <optional>
#include <string>
#include <string_view>

#include "straightway/plan.hpp"
#include "straightway/receipt.hpp"

namespace straightway::python {

std::string pack(const Plan& plan);
std::string pack(const Receipt& receipt);

// Nothing where the bytes are not a whole value of this version.
std::optional<Plan> unpack_plan(std::string_view bytes);
std::optional<Receipt> unpack_receipt(std::string_view bytes);

}  // namespace straightway::python
