#include "placed.hpp"

#include <bit>
#include <cstring>
#include <string>
#include <string_view>

#include "memory.hpp"

namespace nb = nanobind;

namespace straightway::python {
namespace {

constexpr const char* tuple_form =
    "ranges: expected (offset, size, position) tuples, or all of them (offset, size)";

// Behind all before it. A sum that overflows stays beyond any memory, where the library refuses it.
class Packer {
 public:
  std::uint64_t place(std::uint64_t size_bytes) {
    const auto position = next_;
    if (__builtin_add_overflow(next_, size_bytes, &next_)) next_ = UINT64_MAX;
    return position;
  }

 private:
  std::uint64_t next_ = 0;
};

// A view of a buffer, given back.
class View {
 public:
  explicit View(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0) {
      throw nb::python_error();
    }
  }
  ~View() { PyBuffer_Release(&view_); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  const Py_buffer& operator*() const { return view_; }
  const Py_buffer* operator->() const { return &view_; }

 private:
  Py_buffer view_{};
};

// Integers of 8 bytes in this machine's order.
bool is_int64(const Py_buffer& view) {
  std::string_view format = view.format == nullptr ? "B" : view.format;
  constexpr std::string_view own_order =
      std::endian::native == std::endian::little ? "@=<" : "@=>!";
  if (!format.empty() && own_order.find(format.front()) != std::string_view::npos) {
    format.remove_prefix(1);
  }
  return view.itemsize == 8 && format.size() == 1 &&
         std::string_view("qQlLnN").find(format.front()) != std::string_view::npos;
}

std::string shape_of(const Py_buffer& view) {
  std::string text;
  for (int i = 0; i < view.ndim; ++i) {
    text += (i == 0 ? "" : " x ") + std::to_string(view.shape[i]);
  }
  return text.empty() ? "a scalar" : text;
}

void check_array(const Py_buffer& view) {
  if (!is_int64(view)) {
    throw nb::type_error(("ranges: expected int64 or uint64 numbers, got an array of format '" +
                          std::string(view.format == nullptr ? "B" : view.format) + "'")
                             .c_str());
  }
  if (view.ndim != 2 || (view.shape[1] != 2 && view.shape[1] != 3)) {
    throw nb::value_error(("ranges: expected an N x 3 array (offset, size, position) or an N x 2 "
                           "array (offset, size), got " +
                           shape_of(view))
                              .c_str());
  }
  if (PyBuffer_IsContiguous(&view, 'C') != 1) {
    throw nb::value_error(
        "ranges: the array is not contiguous; give numpy.ascontiguousarray(ranges)");
  }
}

// Copied with the GIL held: what another thread writes into the array later changes nothing that
// was checked.
std::vector<PlacedRange> from_array(nb::handle array) {
  const View view(array);
  check_array(*view);
  const auto count = static_cast<std::size_t>(view->shape[0]);
  std::vector<PlacedRange> ranges(count);
  const auto* row = static_cast<const std::byte*>(view->buf);
  const bool has_position = view->shape[1] == 3;
  Packer packer;
  for (auto& range : ranges) {
    std::uint64_t fields[3] = {};
    const std::size_t row_bytes = (has_position ? 3 : 2) * sizeof(fields[0]);
    std::memcpy(fields, row, row_bytes);
    row += row_bytes;
    range = {fields[0], fields[1], has_position ? fields[2] : packer.place(fields[1])};
  }
  return ranges;
}

std::vector<PlacedRange> from_tuples(nb::handle tuples) {
  std::vector<PlacedRange> ranges;
  Packer packer;
  std::size_t length = 0;  // of the first
  for (const nb::handle entry : nb::iter(tuples)) {
    const nb::tuple fields = nb::tuple(nb::borrow(entry));
    if (length == 0) length = fields.size();
    if (fields.size() != length || (length != 2 && length != 3)) throw nb::value_error(tuple_form);
    const auto offset = to_bytes(fields[0], "offset");
    const auto size_bytes = to_bytes(fields[1], "size");
    ranges.push_back({offset, size_bytes,
                      length == 3 ? to_bytes(fields[2], "position") : packer.place(size_bytes)});
  }
  return ranges;
}

}  // namespace

std::vector<PlacedRange> to_placed(nb::handle ranges) {
  return PyObject_CheckBuffer(ranges.ptr()) == 1 ? from_array(ranges) : from_tuples(ranges);
}

}  // namespace straightway::python
