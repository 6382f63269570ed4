#pragma once
// Which files' pages may be kept registered at all.

#include <string>

#include "straightway/facts.hpp"

namespace straightway::os {

// Why the pages of this open file cannot be pinned safely, as a part of a sentence; empty: they
// can, as far as the file goes. Only file systems whose pages are known to be unmapped before they
// are replaced are allowed.
std::string why_not_pinnable(int fd, const FileFacts& facts);

}  // namespace straightway::os
