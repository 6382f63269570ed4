#pragma once
// Finds the memory behind a Python object, and checks all that can be checked without touching it.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

#include "bridge.hpp"
#include "straightway/file.hpp"

namespace straightway::python {

struct Found {
  Memory memory;
  bool is_device = false;        // said by the object; the library asks the driver
  std::optional<Stream> stream;  // that work on it was queued on, where the object says so
  Lease lease;                   // keeps the memory alive
};

// __cuda_array_interface__, then DLPack for a device, the buffer protocol, DLPack for host memory.
// direction read: the object is the target, so it must be writable. stream: the caller's, told to
// DLPack's producer. Throws TypeError, ValueError, and what the object's own code raises.
Found find_memory(nanobind::handle object, Direction direction, std::optional<Stream> stream);

// A stream from what the caller gave: None, a handle, or a CuPy, Torch, Numba or __cuda_stream__
// object.
std::optional<Stream> find_stream(nanobind::handle object);

// Bytes from an int or a text such as "64M"; not negative, below 2^63.
std::uint64_t to_bytes(nanobind::handle object, const char* name);

}  // namespace straightway::python
