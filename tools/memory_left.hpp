#pragma once
// How much host memory this machine has, and has left.

#include <cstdint>
#include <optional>

#include "straightway/result.hpp"

namespace straightway::tools {

// From /proc/meminfo; nullopt where it does not say.
std::optional<std::uint64_t> total_memory_bytes();
std::optional<std::uint64_t> available_memory_bytes();

// What a command takes for itself must not drive the machine out of memory: an error where
// size_bytes are not available.
Result<void> check_fits(std::uint64_t size_bytes);

}  // namespace straightway::tools
