#include "text.hpp"

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace straightway::python {

nb::object to_text(std::string_view text) {
  PyObject* made =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

void raise(const Error& error) {
  const nb::object make = nb::module_::import_("straightway._errors").attr("from_error");
  const nb::object offset = error.offset ? nb::object(nb::int_(*error.offset)) : nb::none();
  const nb::object made = make(to_string(error.kind), to_string(error.origin), error.code,
                               to_text(error.attempted), to_text(error.path), offset,
                               to_text(error.why), to_text(error.advice), to_text(error.message()));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
  throw nb::python_error();
}

void raise_unknown_word(const char* name, nb::handle object, const std::string& known) {
  const bool is_text = PyUnicode_Check(object.ptr());
  const std::string given = nb::cast<std::string>(nb::repr(object));
  PyErr_SetString(is_text ? PyExc_ValueError : PyExc_TypeError,
                  (std::string(name) + ": " + given + " is not one of " + known).c_str());
  throw nb::python_error();
}

}  // namespace straightway::python
