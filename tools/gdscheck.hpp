#pragma once
// The report of the vendor's gdscheck -p, from what `check` found.

#include <string>

#include "direct_ways.hpp"

namespace straightway::tools {

// looked: at the machine alone. A way is named only where every prerequisite of it was seen.
std::string gdscheck_text(const Looked& looked);

}  // namespace straightway::tools
