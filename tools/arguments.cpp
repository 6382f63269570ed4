#include "arguments.hpp"

#include <charconv>

#include "os/facts.hpp"
#include "plan/settings.hpp"

namespace straightway::tools {

Error usage_error(std::string attempted, std::string why, std::string advice) {
  Error error;
  error.kind = ErrorKind::invalid_argument;
  error.attempted = std::move(attempted);
  error.why = std::move(why);
  error.advice = std::move(advice);
  return error;
}

Error interrupted_error(std::string attempted) {
  Error error = usage_error(std::move(attempted), "it was interrupted");
  error.kind = ErrorKind::cancelled;
  return error;
}

Error system_error(int code, std::string attempted, std::string path) {
  Error error;
  error.kind = os::errno_kind(code);
  error.origin = ErrorOrigin::system;
  error.code = code;
  error.attempted = std::move(attempted);
  error.path = std::move(path);
  error.why = os::errno_text(code);
  return error;
}

Result<Destination> parse_destination(const std::string& text) {
  constexpr std::string_view cuda = "cuda:";
  if (text == "host") return Destination{};
  std::int32_t device = 0;
  if (text.starts_with(cuda)) {
    const char* begin = text.data() + cuda.size();
    const char* end = text.data() + text.size();
    const auto [stop, code] = std::from_chars(begin, end, device);
    if (code == std::errc() && stop == end && device >= 0) {
      return Destination{SpaceKind::cuda, device};
    }
  }
  return usage_error("use --to=" + text, "it names no memory", "write host, cuda:0, cuda:1, ...");
}

Result<Door> parse_door(const std::string& text) {
  for (const Door door : {Door::straightway, Door::kvikio, Door::cufile}) {
    if (text == to_string(door)) return door;
  }
  return usage_error("use --door=" + text, "there is no such door",
                     "write straightway, kvikio or cufile");
}

Result<Sync> parse_sync(const std::string& text) {
  for (const Sync sync : {Sync::none, Sync::data, Sync::full}) {
    if (text == to_string(sync)) return sync;
  }
  return usage_error("use --sync=" + text, "it is not known", "write none, data or full");
}

Result<void> apply_choices(const std::string& policy, const std::string& cache,
                           CallOptions& options) {
  if (!policy.empty()) {
    const auto parsed = plan::parse_policy("--policy", policy);
    if (!parsed) return parsed.error();
    options.policy = *parsed;
  }
  if (!cache.empty()) {
    const auto parsed = plan::parse_cache("--cache", cache);
    if (!parsed) return parsed.error();
    options.cache = *parsed;
  }
  return {};
}

}  // namespace straightway::tools
