#pragma once
// The settings that count at a door, as a list of names, values and origins.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "straightway/settings.hpp"

namespace straightway::receipt {

struct ShownSetting {
  const char* layer = "";  // "front", "cufile", or empty
  const char* name = "";
  std::variant<bool, std::uint64_t, std::string> value;
  Origin origin = Origin::built_in;
};

// Straightway's own; at the KvikIO door its front layer's and the cuFile layer's too, at the cuFile
// door that layer's.
std::vector<ShownSetting> shown_settings(const Settings& settings, Door door);

}  // namespace straightway::receipt
