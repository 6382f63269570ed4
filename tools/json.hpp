#pragma once
// The values of the API as JSON, in the order that people read.

#include <nlohmann/json.hpp>
#include <string>

#include "straightway/result.hpp"

namespace straightway::tools {

using Json = nlohmann::ordered_json;

Json to_json(const Error& error);
// Text that the library wrote. File names need not be UTF-8: such bytes are replaced.
Json parse_json(const std::string& text);
// The text of a value, with two spaces of indentation.
std::string dump(const Json& value);

}  // namespace straightway::tools
