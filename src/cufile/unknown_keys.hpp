#pragma once
// What a cufile.json says and nobody reads: misspelt keys and sections.

#include <string>
#include <vector>

#include "cufile/json_text.hpp"

namespace straightway::cufile {

struct UnknownKey {
  std::string name;  // "properties.allow_compat_mod"
  std::string what;  // "is no key that is known here; did you mean properties.allow_compat_mode?"
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

// In the order of the file; the first unknown_limit of them.
inline constexpr std::size_t unknown_limit = 32;
std::vector<UnknownKey> find_unknown_keys(const JsonValue& root);

}  // namespace straightway::cufile
