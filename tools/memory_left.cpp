#include "memory_left.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "arguments.hpp"
#include "os/system_text.hpp"
#include "plan/units.hpp"

namespace straightway::tools {
namespace {

std::optional<std::uint64_t> read_bytes_of(std::string_view key) {
  const auto text = os::read_text("/proc/meminfo", 8192).value_or("");
  const auto at = text.find(key);
  if (at == std::string::npos) return std::nullopt;
  const auto begin = text.find_first_not_of(' ', at + key.size());
  if (begin == std::string::npos) return std::nullopt;
  const auto kib = os::to_number(std::string_view(text).substr(begin));
  return kib ? std::optional(*kib * 1024) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> total_memory_bytes() { return read_bytes_of("MemTotal:"); }

std::optional<std::uint64_t> available_memory_bytes() { return read_bytes_of("MemAvailable:"); }

Result<void> check_fits(std::uint64_t size_bytes) {
  const auto left_bytes = available_memory_bytes();
  if (!left_bytes || size_bytes <= *left_bytes) return {};
  Error error = usage_error(fmt::format("hold {} in memory", plan::format_bytes(size_bytes)),
                            fmt::format("{} are available", plan::format_bytes(*left_bytes)),
                            "name a smaller --size");
  error.kind = ErrorKind::out_of_memory;
  return error;
}

}  // namespace straightway::tools
