#include "os/nvfs_stats.hpp"

#include "os/system_text.hpp"

namespace straightway::os {
namespace {

constexpr const char* folder = "/proc/driver/nvidia-fs";

// What stands behind `name` up to the next blank or bracket.
std::string_view word_after(std::string_view line, std::string_view name) {
  const auto at = line.find(name);
  if (at == std::string_view::npos) return {};
  const auto rest = line.substr(at + name.size());
  return rest.substr(0, rest.find_first_of(" )\n"));
}

// Digits and nothing else: what is half a number is evidence of nothing.
std::optional<std::uint64_t> number_after(std::string_view line, std::string_view name) {
  const auto word = word_after(line, name);
  const bool digits = word.find_first_not_of("0123456789") == std::string_view::npos;
  return digits ? to_number(word) : std::nullopt;
}

// "Reads : n=3 ok=3 err=0 readMiB=12 io_state_err=0"; without counting there is no n. A second line
// of the same name has the rates.
void read_counter(NvfsCounter& counter, std::string_view line, std::string_view mib, bool& found) {
  const auto calls = number_after(line, " n=");
  const auto failed = number_after(line, " err=");
  const auto bytes = number_after(line, mib);
  if (!calls || !failed || !bytes) return;
  // Refused since the memory's mapping was ending; a sum that wraps still differs from the last
  // one.
  counter = {*calls, *failed + number_after(line, " io_state_err=").value_or(0), *bytes};
  found = true;
}

}  // namespace

std::optional<NvfsStats> read_nvfs_stats(const std::string& root) {
  const auto text = read_text(root + folder + "/stats", 64 << 10);
  if (!text) return std::nullopt;
  NvfsStats stats;
  bool enabled = false;
  bool reads = false;
  bool writes = false;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const auto line = take_field(rest, '\n');
    if (line.starts_with("NVFS Driver")) stats.version = word_after(line, "version: ");
    if (line.starts_with("IO stats:")) enabled = word_after(line, "IO stats: ") == "Enabled,";
    if (line.starts_with("Reads")) read_counter(stats.reads, line, " readMiB=", reads);
    if (line.starts_with("Writes")) read_counter(stats.writes, line, " writeMiB=", writes);
  }
  stats.counted = enabled && reads && writes;
  return stats;
}

std::string nvfs_version(const std::string& root) {
  if (const auto stats = read_nvfs_stats(root); stats && !stats->version.empty()) {
    return stats->version;
  }
  const auto text = read_text(root + folder + "/version", 256).value_or("");
  return std::string(word_after(text, "version: "));
}

}  // namespace straightway::os
