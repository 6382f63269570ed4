#pragma once
// Many ranges of one memory, from a sequence of tuples or from an array of integers.

#include <nanobind/nanobind.h>

#include <vector>

#include "straightway/file.hpp"

namespace straightway::python {

// From (offset, size, position) or (offset, size) tuples, or an N x 3 or N x 2 array of int64 or
// uint64, whose numbers are copied without an object for each. Without positions the ranges lie one
// after another. Whether they fit file and memory is left to the library.
std::vector<PlacedRange> to_placed(nanobind::handle ranges);

}  // namespace straightway::python
