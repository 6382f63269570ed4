#pragma once
// One call's arguments, from Python objects to CallOptions and Memory, all checked.

#include <nanobind/nanobind.h>

#include <chrono>
#include <optional>
#include <vector>

#include "bridge.hpp"
#include "straightway/file.hpp"

namespace straightway::python {

// From (policy, cache, evidence, exact, sync, stream, deadline); None: not given.
CallOptions to_options(const nanobind::tuple& keywords);

// Seconds, more than 0; None: no limit.
std::optional<std::chrono::nanoseconds> to_duration(nanobind::handle seconds, const char* name,
                                                    bool zero_is_valid);

// One range of a call, with what keeps its memory.
struct Piece {
  Memory memory;
  Lease lease;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  bool is_device = false;
};

// From (array, offset, size). Sets options.stream from the memory where the caller gave none.
Piece to_piece(const nanobind::tuple& place, Direction direction, CallOptions& options);

}  // namespace straightway::python
