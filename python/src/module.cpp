// The extension module straightway._straightway: thin; the package around it is the API.

#include <nanobind/nanobind.h>

#include "calls.hpp"
#include "values.hpp"

NB_MODULE(_straightway, module) {
  // Objects that are alive when the interpreter ends stay: transfers may still use them.
  nanobind::set_leak_warnings(false);
  straightway::python::bind_values(module);
  straightway::python::bind_calls(module);
}
