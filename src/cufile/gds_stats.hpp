#pragma once
// Statistics as the vendor's gds_stats prints them.

#include <string>

#include "cufile/published.hpp"

namespace straightway::cufile {

// Its lines for level 1, 2 or 3. counters: with averages and rates.
std::string gds_stats_text(const Published& counters, int level);

}  // namespace straightway::cufile
