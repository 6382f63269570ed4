#pragma once
// Settings from text: sizes, words, and the precedence of their origins.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "straightway/result.hpp"
#include "straightway/settings.hpp"

namespace straightway::plan {

// "4194304", "4M", "4MiB", "4 MiB", "512k", "64KB": powers of 1024. name stands in the error.
Result<std::uint64_t> parse_size(std::string_view name, std::string_view text);
// 0/1, true/false, yes/no, on/off in any case.
Result<bool> parse_bool(std::string_view name, std::string_view text);
Result<std::uint64_t> parse_count(std::string_view name, std::string_view text, std::uint64_t least,
                                  std::uint64_t most);
Result<Policy> parse_policy(std::string_view name, std::string_view text);
Result<Cache> parse_cache(std::string_view name, std::string_view text);
Result<Demand> parse_demand(std::string_view name, std::string_view text);
Result<CompatMode> parse_compat_mode(std::string_view name, std::string_view text);

// Looks a variable up; the real one is getenv, tests give a map.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// Reads STRAIGHTWAY_*, KVIKIO_* and CUFILE_* over the defaults. `settings` may already hold values
// of rank api: those stay. An unknown or nonsense value is an error that names the variable.
Result<void> read_environment(Settings& settings, const Environment& environment);

}  // namespace straightway::plan
