#pragma once
// Many ranges of a file and of one memory: checked, all of them, before anything moves.

#include <span>
#include <string>

#include "straightway/file.hpp"

namespace straightway {

// The error names the first range that is wrong, by its number in the call.
Result<void> check_placed(Direction direction, const std::string& path, const Memory& memory,
                          std::span<const PlacedRange> ranges);

}  // namespace straightway
