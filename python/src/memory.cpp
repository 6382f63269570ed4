#include "memory.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "dlpack.hpp"
#include "plan/settings.hpp"

namespace nb = nanobind;

namespace straightway::python {
namespace {

using Dimensions = std::vector<std::int64_t>;

[[noreturn]] void fail(PyObject* type, const std::string& text) {
  PyErr_SetString(type, text.c_str());
  throw nb::python_error();
}

std::string type_of(nb::handle object) { return Py_TYPE(object.ptr())->tp_name; }

[[noreturn]] void fail_not_contiguous(nb::handle object) {
  fail(PyExc_ValueError,
       "the " + type_of(object) +
           " is not contiguous: its bytes are not one range of memory; make a "
           "contiguous copy first (numpy.ascontiguousarray, cupy.ascontiguousarray, "
           "tensor.contiguous()), or pass its contiguous pieces to read_ranges or "
           "write_ranges");
}

[[noreturn]] void fail_read_only(nb::handle object) {
  fail(PyExc_ValueError, "the " + type_of(object) +
                             " is read-only, so nothing can be read into it; pass a writable array "
                             "(JAX arrays and bytes can only be written from)");
}

// Whether strides (in bytes) describe shape in C order, or in Fortran order.
bool is_dense(const Dimensions& shape, const Dimensions& strides, std::int64_t item_bytes,
              bool c_order) {
  std::int64_t expected = item_bytes;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const std::size_t i = c_order ? shape.size() - 1 - k : k;
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

bool is_contiguous(const Dimensions& shape, const Dimensions& strides, std::int64_t item_bytes) {
  return is_dense(shape, strides, item_bytes, true) || is_dense(shape, strides, item_bytes, false);
}

// The bytes of an array; refuses negative and overflowing shapes.
std::int64_t total_bits(const Dimensions& shape, std::int64_t item_bits) {
  bool empty = false;
  for (const std::int64_t n : shape) {
    if (n < 0) fail(PyExc_ValueError, "the array has a negative dimension");
    empty = empty || n == 0;
  }
  if (empty) return 0;
  std::int64_t total = item_bits;
  for (const std::int64_t n : shape) {
    if (__builtin_mul_overflow(total, n, &total)) {
      fail(PyExc_ValueError, "the array's shape overflows: its size does not fit 63 bits");
    }
  }
  return total;
}

std::optional<nb::object> attribute(nb::handle object, const char* name) {
  PyObject* value = PyObject_GetAttrString(object.ptr(), name);
  if (value != nullptr) return nb::steal(value);
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw nb::python_error();
  PyErr_Clear();
  return std::nullopt;
}

Dimensions to_dimensions(nb::handle tuple) {
  Dimensions out;
  for (nb::handle item : nb::borrow<nb::sequence>(tuple)) {
    const long long value = PyLong_AsLongLong(item.ptr());
    if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    out.push_back(value);
  }
  return out;
}

// "<f4" -> 4.
std::int64_t item_bytes_of(const std::string& type) {
  if (type.size() < 3 || type[1] == 't' || type[1] == 'O') {
    fail(PyExc_ValueError, "__cuda_array_interface__ has the element type '" + type +
                               "', which has no fixed size in bytes");
  }
  std::int64_t bytes = 0;
  for (std::size_t i = 2; i < type.size(); ++i) {
    if (type[i] < '0' || type[i] > '9' || bytes > 1 << 20) {
      fail(PyExc_ValueError,
           "__cuda_array_interface__ has an unreadable element type '" + type + "'");
    }
    bytes = bytes * 10 + (type[i] - '0');
  }
  return type[1] == 'U' ? bytes * 4 : bytes;
}

void* to_pointer(nb::handle object) {
  if (object.is_none()) return nullptr;
  void* pointer = PyLong_AsVoidPtr(object.ptr());
  if (pointer == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
  return pointer;
}

nb::object item(const nb::dict& interface, const char* key) {
  PyObject* value = PyDict_GetItemString(interface.ptr(), key);
  if (value == nullptr) {
    fail(PyExc_ValueError, std::string("__cuda_array_interface__ lacks '") + key + "'");
  }
  return nb::borrow(value);
}

std::optional<Stream> interface_stream(const nb::dict& interface) {
  PyObject* value = PyDict_GetItemString(interface.ptr(), "stream");
  if (value == nullptr || value == Py_None) return std::nullopt;
  void* handle = to_pointer(value);
  if (handle == nullptr) {
    fail(PyExc_ValueError,
         "__cuda_array_interface__ has stream 0, which the protocol forbids as ambiguous; 1 is the "
         "legacy default stream, 2 the per-thread one");
  }
  return Stream{handle};
}

Found from_interface(nb::handle object, const nb::object& value, Direction direction) {
  if (!nb::isinstance<nb::dict>(value)) {
    fail(PyExc_TypeError, "__cuda_array_interface__ of the " + type_of(object) + " is no dict");
  }
  const auto interface = nb::cast<nb::dict>(value);
  const Dimensions shape = to_dimensions(item(interface, "shape"));
  const std::int64_t item_bytes =
      item_bytes_of(nb::cast<std::string>(nb::str(item(interface, "typestr"))));
  const nb::object data = item(interface, "data");
  if (!nb::isinstance<nb::tuple>(data) || nb::len(data) != 2) {
    fail(PyExc_ValueError, "__cuda_array_interface__ has no (pointer, read-only) under 'data'");
  }
  PyObject* mask = PyDict_GetItemString(interface.ptr(), "mask");
  if (mask != nullptr && mask != Py_None) fail(PyExc_ValueError, "masked arrays are not supported");
  PyObject* strides = PyDict_GetItemString(interface.ptr(), "strides");
  if (strides != nullptr && strides != Py_None) {
    const Dimensions steps = to_dimensions(strides);
    if (steps.size() != shape.size()) fail(PyExc_ValueError, "strides and shape differ in length");
    if (!is_contiguous(shape, steps, item_bytes)) fail_not_contiguous(object);
  }
  if (direction == Direction::read && PyObject_IsTrue(data[1].ptr()) == 1) fail_read_only(object);
  Found found;
  found.memory = {to_pointer(data[0]),
                  static_cast<std::size_t>(total_bits(shape, item_bytes * 8) / 8)};
  if (found.memory.address == nullptr && found.memory.size_bytes > 0) {
    fail(PyExc_ValueError, "__cuda_array_interface__ has a null pointer");
  }
  found.is_device = true;
  found.stream = interface_stream(interface);
  found.lease = Lease(Py_NewRef(object.ptr()));
  return found;
}

// __dlpack__ with the newest arguments that the producer takes.
nb::object call_dlpack(const nb::object& method, const nb::object& stream) {
  nb::dict arguments;
  if (!stream.is_none()) arguments["stream"] = stream;
  nb::dict newer;
  newer.update(arguments);
  newer["max_version"] = nb::make_tuple(1, 1);
  PyObject* capsule = PyObject_Call(method.ptr(), nb::make_tuple().ptr(), newer.ptr());
  if (capsule == nullptr) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
    PyErr_Clear();
    capsule = PyObject_Call(method.ptr(), nb::make_tuple().ptr(), arguments.ptr());
    if (capsule == nullptr) throw nb::python_error();
  }
  return nb::steal(capsule);
}

struct Opened {
  const dlpack::Tensor* tensor = nullptr;
  bool read_only = false;
};

Opened open_capsule(nb::handle object, const nb::object& capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned") == 1) {
    const auto* managed = static_cast<const dlpack::ManagedVersioned*>(
        PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    if (managed->version.major != 1) {
      fail(PyExc_ValueError, "the " + type_of(object) + " speaks DLPack " +
                                 std::to_string(managed->version.major) + ", known here: 1");
    }
    return {&managed->tensor, (managed->flags & dlpack::read_only_flag) != 0};
  }
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor") != 1) {
    fail(PyExc_TypeError, "__dlpack__ of the " + type_of(object) + " gave no DLPack capsule");
  }
  return {
      &static_cast<const dlpack::Managed*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"))->tensor,
      false};
}

// The capsule is kept, not consumed: dropping it tells the producer, as for an unused one.
Found from_dlpack(nb::handle object, const nb::object& method, const dlpack::Device& device,
                  Direction direction, std::optional<Stream> stream) {
  const bool is_device = device.kind == dlpack::cuda || device.kind == dlpack::cuda_managed;
  nb::object told = nb::none();
  if (is_device) {
    told =
        nb::int_(stream && stream->handle ? reinterpret_cast<std::uintptr_t>(stream->handle) : 1);
  }
  const nb::object capsule = call_dlpack(method, told);
  const Opened opened = open_capsule(object, capsule);
  const dlpack::Tensor& tensor = *opened.tensor;
  if (direction == Direction::read && opened.read_only) fail_read_only(object);
  const Dimensions shape(tensor.shape, tensor.shape + tensor.dimensions);
  if (tensor.strides != nullptr) {
    const Dimensions strides(tensor.strides, tensor.strides + tensor.dimensions);
    if (!is_contiguous(shape, strides, 1)) fail_not_contiguous(object);
  }
  const std::int64_t bits = total_bits(shape, std::int64_t{tensor.type.bits} * tensor.type.lanes);
  Found found;
  found.memory = {static_cast<std::byte*>(tensor.data) + tensor.byte_offset,
                  static_cast<std::size_t>(bits / 8 + (bits % 8 != 0))};
  if (tensor.data == nullptr && bits > 0) fail(PyExc_ValueError, "the DLPack tensor has no data");
  found.is_device = is_device;
  if (device.kind == dlpack::cuda) found.memory.device = device.id;
  found.lease = Lease(Py_NewRef(capsule.ptr()));
  return found;
}

// Whether a buffer's format has Python objects among its elements: 'O', but not in a field's name.
bool has_objects(std::string_view format) {
  bool in_name = false;
  for (const char c : format) {
    if (c == ':') in_name = !in_name;
    if (c == 'O' && !in_name) return true;
  }
  return false;
}

// For what cannot say a format: NumPy's dates, StringDType and extension types have none.
bool says_has_objects(nb::handle object) {
  const auto type = attribute(object, "dtype");
  const auto answer = type ? attribute(*type, "hasobject") : std::nullopt;
  return answer && PyObject_IsTrue(answer->ptr()) == 1;
}

[[noreturn]] void fail_objects(nb::handle object) {
  fail(PyExc_ValueError,
       "the " + type_of(object) +
           " has Python objects as elements: its bytes are their addresses, which "
           "a file cannot hold; use an array of numbers or bytes");
}

// Bytes over references would crash the interpreter, so the format is asked for first.
void get_buffer(nb::handle object, Py_buffer& view) {
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_STRIDED_RO | PyBUF_FORMAT) == 0) {
    if (view.format == nullptr || !has_objects(view.format)) return;
    PyBuffer_Release(&view);
    fail_objects(object);
  }
  if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_BufferError)) {
    throw nb::python_error();
  }
  PyErr_Clear();
  if (says_has_objects(object)) fail_objects(object);
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_STRIDED_RO) != 0) throw nb::python_error();
}

Found from_buffer(nb::handle object, Direction direction) {
  auto view = std::make_unique<Py_buffer>();
  get_buffer(object, *view);
  Found found;
  found.memory = {view->buf, static_cast<std::size_t>(view->len)};
  const bool contiguous = PyBuffer_IsContiguous(view.get(), 'A') == 1;
  const bool read_only = view->readonly != 0;
  found.lease = Lease(std::move(view));
  if (!contiguous) fail_not_contiguous(object);
  if (direction == Direction::read && read_only) fail_read_only(object);
  return found;
}

std::optional<dlpack::Device> dlpack_device(nb::handle object) {
  const auto method = attribute(object, "__dlpack_device__");
  if (!method) return std::nullopt;
  const nb::object device = (*method)();
  return dlpack::Device{static_cast<std::int32_t>(nb::cast<long>(nb::int_(device[0]))),
                        static_cast<std::int32_t>(nb::cast<long>(nb::int_(device[1])))};
}

void refuse_device(nb::handle object, const dlpack::Device& device) {
  fail(PyExc_TypeError, "the " + type_of(object) + " lies on DLPack device type " +
                            std::to_string(device.kind) +
                            "; known here: 1 (CPU), 2 (CUDA), 3 (pinned host), 13 (CUDA managed)");
}

// Interned: looked up in each call, and most objects lack it.
PyObject* interface_name() {
  static PyObject* name = PyUnicode_InternFromString("__cuda_array_interface__");
  return name;
}

}  // namespace

Found find_memory(nb::handle object, Direction direction, std::optional<Stream> stream) {
  // What exports a buffer is host memory, unless it says otherwise.
  if (PyObject_CheckBuffer(object.ptr()) == 1 &&
      PyObject_HasAttr(object.ptr(), interface_name()) == 0) {
    return from_buffer(object, direction);
  }
  if (const auto interface = attribute(object, "__cuda_array_interface__")) {
    return from_interface(object, *interface, direction);
  }
  const auto method = attribute(object, "__dlpack__");
  if (!method) {
    fail(PyExc_TypeError,
         "expected an array (__cuda_array_interface__, DLPack or the buffer protocol), got " +
             type_of(object));
  }
  const auto device = dlpack_device(object).value_or(dlpack::Device{dlpack::cpu, 0});
  const auto known = {dlpack::cpu, dlpack::cuda, dlpack::cuda_host, dlpack::cuda_managed};
  if (std::find(known.begin(), known.end(), device.kind) == known.end()) {
    refuse_device(object, device);
  }
  return from_dlpack(object, *method, device, direction, stream);
}

std::optional<Stream> find_stream(nb::handle object) {
  if (object.is_none()) return std::nullopt;
  nb::object value = nb::borrow(object);
  if (const auto protocol = attribute(object, "__cuda_stream__")) {
    const nb::object pair = PyCallable_Check(protocol->ptr()) ? (*protocol)() : *protocol;
    value = nb::object(pair[1]);
  } else if (!PyLong_Check(object.ptr())) {
    for (const char* name : {"cuda_stream", "ptr", "handle"}) {
      if (const auto handle = attribute(object, name)) {
        value = *handle;
        break;
      }
    }
    if (const auto inner = attribute(value, "value")) value = *inner;  // Numba: a ctypes pointer
    if (value.is_none()) value = nb::int_(0);
  }
  if (!PyLong_Check(value.ptr())) {
    fail(PyExc_TypeError,
         "stream: expected a stream of CuPy, Torch or Numba, or a handle as an int, got " +
             type_of(object));
  }
  if (nb::int_(value) < nb::int_(0)) fail(PyExc_ValueError, "stream: a handle cannot be negative");
  // Frameworks give their default stream as 0; 1 is its unambiguous name.
  void* handle = to_pointer(value);
  return Stream{handle != nullptr ? handle : reinterpret_cast<void*>(std::uintptr_t{1})};
}

std::uint64_t to_bytes(nb::handle object, const char* name) {
  if (PyUnicode_Check(object.ptr())) {
    auto parsed = plan::parse_size(name, nb::cast<std::string>(nb::borrow<nb::str>(object)));
    if (!parsed) fail(PyExc_ValueError, parsed.error().message());
    return *parsed;
  }
  PyObject* index = PyNumber_Index(object.ptr());
  if (index == nullptr) {
    PyErr_Clear();
    fail(PyExc_TypeError,
         std::string(name) + ": expected an int or a size such as '64M', got " + type_of(object));
  }
  const nb::object number = nb::steal(index);
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(index, &overflow);
  if (overflow != 0 || value < 0) {
    fail(PyExc_ValueError, std::string(name) + ": " + nb::str(number).c_str() +
                               (overflow > 0 ? " is too large: file positions end at 2^63 - 1"
                                             : " is negative; give 0 or more"));
  }
  return static_cast<std::uint64_t>(value);
}

}  // namespace straightway::python
