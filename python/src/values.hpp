#pragma once
// Plan and Receipt as Python sees them, before straightway._values dresses them.

#include <nanobind/nanobind.h>

#include "straightway/settings.hpp"

namespace straightway::python {

void bind_values(nanobind::module_& module);

// {name: (value, where it came from)}.
nanobind::dict settings_to_dict(const Settings& settings);

}  // namespace straightway::python
