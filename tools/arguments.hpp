#pragma once
// Words of the command line as values of the API.

#include <optional>
#include <string>

#include "straightway/file.hpp"

namespace straightway::tools {

struct Destination {
  SpaceKind space = SpaceKind::host;
  std::int32_t device = -1;
};
// "host", "cuda:0".
Result<Destination> parse_destination(const std::string& text);
Result<Door> parse_door(const std::string& text);
Result<Sync> parse_sync(const std::string& text);
// Sets policy and cache where they were given.
Result<void> apply_choices(const std::string& policy, const std::string& cache,
                           CallOptions& options);

// An error of the command line itself.
Error usage_error(std::string attempted, std::string why, std::string advice = "");
// What an interrupted command ends with.
Error interrupted_error(std::string attempted);
// An error of a system call.
Error system_error(int code, std::string attempted, std::string path);

}  // namespace straightway::tools
