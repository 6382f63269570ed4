#include "arguments.hpp"

#include <cmath>
#include <string>

#include "memory.hpp"
#include "text.hpp"

namespace nb = nanobind;

namespace straightway::python {
namespace {

constexpr double most_seconds = 1e9;  // 30 years; what is longer is as good as no limit

// The size that counts, refused where it does not fit the memory or the file positions.
std::uint64_t checked_size(nb::handle size, std::uint64_t memory_bytes, std::uint64_t offset) {
  const std::uint64_t wanted = size.is_none() ? memory_bytes : to_bytes(size, "size");
  if (wanted > memory_bytes) {
    throw nb::value_error(("size: " + std::to_string(wanted) + " bytes do not fit an array of " +
                           std::to_string(memory_bytes) + " bytes")
                              .c_str());
  }
  if (wanted > INT64_MAX - offset) {
    throw nb::value_error(("offset: " + std::to_string(offset) + " + " + std::to_string(wanted) +
                           " bytes is too large: file positions end at 2^63 - 1")
                              .c_str());
  }
  return wanted;
}

}  // namespace

std::optional<std::chrono::nanoseconds> to_duration(nb::handle seconds, const char* name,
                                                    bool zero_is_valid) {
  if (seconds.is_none()) return std::nullopt;
  const double value = PyFloat_AsDouble(seconds.ptr());
  if (value == -1.0 && PyErr_Occurred() != nullptr) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
    PyErr_Clear();
    throw nb::type_error(
        (std::string(name) + ": expected seconds, a number, got " + Py_TYPE(seconds.ptr())->tp_name)
            .c_str());
  }
  if (std::isnan(value) || value < 0 || (value == 0 && !zero_is_valid)) {
    throw nb::value_error(
        (std::string(name) + ": expected seconds, " + (zero_is_valid ? "0 or more" : "more than 0"))
            .c_str());
  }
  if (value > most_seconds) return std::nullopt;
  const auto ns = std::chrono::nanoseconds(static_cast<std::int64_t>(value * 1e9));
  return zero_is_valid ? ns : std::max(ns, std::chrono::nanoseconds(1));
}

CallOptions to_options(const nb::tuple& keywords) {
  if (keywords.size() != 7) throw nb::type_error("a call has 7 keywords");
  CallOptions options;
  options.policy = to_optional_word("policy", keywords[0], all_policies);
  options.cache = to_optional_word("cache", keywords[1], all_caches);
  options.evidence = to_optional_word("evidence", keywords[2], all_demands);
  options.exact = PyObject_IsTrue(nb::object(keywords[3]).ptr()) == 1;
  options.sync = to_optional_word("sync", keywords[4], all_syncs).value_or(Sync::none);
  options.stream = find_stream(keywords[5]);
  options.deadline = to_duration(keywords[6], "deadline", false);
  return options;
}

Piece to_piece(const nb::tuple& place, Direction direction, CallOptions& options) {
  if (place.size() != 3) throw nb::type_error("a place has 3 fields");
  Piece piece;
  piece.offset = to_bytes(place[1], "offset");
  Found found = find_memory(place[0], direction, options.stream);
  piece.size_bytes = checked_size(place[2], found.memory.size_bytes, piece.offset);
  if (!options.stream) options.stream = found.stream;
  piece.memory = found.memory;
  piece.is_device = found.is_device;
  piece.lease = std::move(found.lease);
  return piece;
}

}  // namespace straightway::python
