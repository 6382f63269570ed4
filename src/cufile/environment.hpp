#pragma once
// The one place of this library that looks at environment variables.

#include <optional>
#include <string>

namespace straightway::cufile {

std::optional<std::string> read_variable(const char* name);

}  // namespace straightway::cufile
