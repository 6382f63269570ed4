#pragma once
// A reader of JSON as people write it: comments and trailing commas are allowed, and each value
// knows its line and column, so that a complaint about it can point there.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "straightway/result.hpp"

namespace straightway::cufile {

struct JsonValue {
  struct Member;
  using Members = std::vector<Member>;
  using List = std::vector<JsonValue>;
  // In order: null, bool, whole number, other number, text, list, object.
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Members> value;
  std::uint32_t line = 0;  // from 1
  std::uint32_t column = 0;

  // The last member of that name, as duplicates are usually taken; null where there is none.
  const JsonValue* find(std::string_view name) const;
  const char* kind() const;  // "a number", "a list", ...
};
struct JsonValue::Member {
  std::string name;
  JsonValue value;
};

// name stands in the error: "/etc/cufile.json:3:7: expected a value".
Result<JsonValue> read_json(std::string_view text, const std::string& name);

}  // namespace straightway::cufile
