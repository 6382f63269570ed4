#pragma once
// Context, File and Job as Python sees them, before the package dresses them.

#include <nanobind/nanobind.h>

namespace straightway::python {

void bind_calls(nanobind::module_& module);

}  // namespace straightway::python
