// How much memory the page cache may still take without pressing anybody.

#include <algorithm>

#include "os/facts.hpp"
#include "os/system_text.hpp"

namespace straightway::os {
namespace {

// The number behind a key at the start of a line.
std::optional<std::uint64_t> value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = take_field(text, '\n');
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    while (line.starts_with(' ')) line.remove_prefix(1);
    return to_number(line);
  }
  return std::nullopt;
}

struct Names {
  const char* limit;
  const char* used;
  const char* inactive;  // file pages: the kernel takes them back first
  const char* active;
};
constexpr Names unified = {"/memory.max", "/memory.current", "inactive_file ", "active_file "};
constexpr Names legacy = {"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                          "total_inactive_file ", "total_active_file "};

// What a group may still take; nullopt where it has no limit ("max" is no number).
std::optional<std::uint64_t> spare_of(const std::string& group, const Names& names) {
  const auto limit = read_number(group + names.limit);
  const auto used = limit ? read_number(group + names.used) : std::nullopt;
  if (!used) return std::nullopt;
  const auto stat = read_text(group + "/memory.stat", 1 << 16).value_or("");
  const auto cached =
      value_of(stat, names.inactive).value_or(0) + value_of(stat, names.active).value_or(0);
  const auto held = *used - std::min(*used, cached);
  return *limit - std::min(*limit, held);
}

void tighten(std::uint64_t& spare, const std::string& tree, std::string group, const Names& names) {
  while (true) {
    if (const auto left = spare_of(tree + group, names)) spare = std::min(spare, *left);
    if (group.empty()) return;
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

}  // namespace

std::optional<std::uint64_t> spare_memory_bytes(const std::string& root) {
  const auto meminfo = read_text(root + "/proc/meminfo", 1 << 14);
  const auto available = meminfo ? value_of(*meminfo, "MemAvailable:") : std::nullopt;
  if (!available) return std::nullopt;
  std::uint64_t spare = *available << 10;
  const auto groups = read_text(root + "/proc/self/cgroup").value_or("");
  const std::string tree = root + "/sys/fs/cgroup";
  std::string_view rest = groups;
  while (!rest.empty()) {
    std::string_view line = take_field(rest, '\n');
    const bool first = take_field(line, ':') == "0";
    const auto controllers = take_field(line, ':');
    const std::string group(line == "/" ? "" : line);
    if (first && controllers.empty()) tighten(spare, tree, group, unified);
    if (controllers == "memory") tighten(spare, tree + "/memory", group, legacy);
  }
  return spare;
}

}  // namespace straightway::os
