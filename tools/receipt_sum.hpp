#pragma once
// Many receipts as one.

#include "straightway/receipt.hpp"

namespace straightway::tools {

// Adds a later receipt of the same direction. Times span from the first to the last; evidence is
// the weakest; what was measured for one alone is not measured for the sum.
void add(Receipt& sum, const Receipt& later);

}  // namespace straightway::tools
