// What the bench shows to a person.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench_run.hpp"
#include "memory_left.hpp"
#include "os/facts.hpp"
#include "plan/units.hpp"

namespace straightway::tools {
namespace {

// From this share of a ceiling on, the ceiling is what limits.
constexpr double near_share = 0.85;
// Runs that differ by more cannot be told apart from a ceiling.
constexpr double largest_spread = 0.4;

std::string rate(double gbs) {
  return gbs >= 9.995 ? fmt::format("{:.1f}", gbs) : fmt::format("{:.2f}", gbs);
}

std::string disk_line(const BenchRun& run) {
  std::string line;
  for (const auto& [name, gbs] : run.ceilings.disk) {
    line += fmt::format("{}{} {}", line.empty() ? "" : "; ", name, rate(gbs));
  }
  return line;
}

std::string raw_write_line(const BenchRun& run) {
  std::string line;
  for (const auto& [name, gbs] : run.ceilings.write) {
    line += fmt::format("{}{} {}", line.empty() ? "" : "; ", name, rate(gbs));
  }
  return line;
}

double best_of(const std::map<std::string, double>& ways) {
  double best = 0;
  for (const auto& [name, gbs] : ways) best = std::max(best, gbs);
  return best;
}

std::string share_text(const BenchCase& result) {
  if (result.ceiling.gbs <= 0) return "-";
  return fmt::format("{:.0f} %", result.share() * 100);
}

std::string line_of(const BenchCase& result) {
  if (!result.skipped.empty())
    return fmt::format("{:<14} not measured: {}", result.name, result.skipped);
  if (!result.measured()) return fmt::format("{:<14} NOT VERIFIED, so no number", result.name);
  std::string line = fmt::format(
      "{:<14} {:>6} {:>8} {:>7.1f} % {:>8.3f} {:>8} {:>10}   yes", result.name,
      rate(result.median_gbs), share_text(result), result.spread * 100, result.cpu_s_per_gb,
      result.pinned_bytes == 0 ? "-" : plan::format_bytes(result.pinned_bytes),
      result.first_call_gbs ? rate(*result.first_call_gbs) : "-");
  if (result.p50_us && result.p99_us) {
    line += fmt::format("   p50 {:.1f} us, p99 {:.1f} us", *result.p50_us, *result.p99_us);
  }
  return line;
}

// "link", "CPU", "disk", or empty where no ceiling is near.
std::string limit_of(const BenchRun& run, const BenchCase& result) {
  const std::string& name = result.name;
  if (result.share() >= near_share) {
    if (name.starts_with("cold")) return "disk";
    if (name.starts_with("write")) return "the kernel's own writing";
    if (name.starts_with("small"))
      return "the fixed cost of a read, and of a copy where there is "
             "a GPU";
    if (result.ceiling.name == "link") {
      // Pinned pages are not copied by a CPU.
      const bool copied = name != "pinned";
      return copied && run.ceilings.copiers < run.ceilings.link ? "CPU" : "link";
    }
    return result.ceiling.name == "copiers" ? "CPU" : result.ceiling.name;
  }
  const bool hot = name == "hot" || name == "ranges" || name == "pinned";
  // Filling host memory may be slower than the link.
  if (hot && run.ceilings.copiers > 0 && result.median_gbs / run.ceilings.copiers >= near_share) {
    return "CPU";
  }
  return "";
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

void print_header(const BenchRun& run) {
  const FileFacts& file = *run.file.facts();
  std::string text = fmt::format(
      "{}{}, {} on {}, into {}\nHot cases move {}, cold ones {}; medians of {}\n",
      run.sample.path(), run.sample.made() ? " (made for this bench, removed at its end)" : "",
      file.filesystem, file.device.empty() ? "no device of its own" : file.device,
      run.target->name(), plan::format_bytes(run.size_bytes), plan::format_bytes(run.cold_bytes),
      run.rounds);
  if (!run.on_device()) {
    text += "Into host memory: the ceiling of hot bytes is a plain pread() by all processors.\n";
  }
  if (run.target->name().find("Simulated") != std::string::npos) {
    text += "The GPU is simulated: its speed means nothing.\n";
  }
  run.terminal.print(text);
}

void print_ceilings(const BenchRun& run) {
  std::string text = "\n" + run.terminal.paint(Paint::bold, "Ceilings, GB/s (1e9 bytes)") + "\n";
  const Ceilings& found = run.ceilings;
  if (found.link > 0) {
    text += fmt::format("link      {:>6}   pinned copies of {}\n", rate(found.link),
                        plan::format_bytes(run.area->size_bytes()));
  }
  if (found.copiers > 0) {
    text += fmt::format("copiers   {:>6}   pread from the page cache, {} threads\n",
                        rate(found.copiers), run.threads);
  }
  if (!found.disk.empty()) {
    text += fmt::format("disk      {:>6}   {}\n", rate(best_of(found.disk)), disk_line(run));
  }
  if (!found.write.empty()) {
    text += fmt::format("writing   {:>6}   {}\n", rate(best_of(found.write)), raw_write_line(run));
  }
  run.terminal.print(text);
}

void print_cases(const BenchRun& run) {
  std::string text = "\n";
  text += run.terminal.paint(
      Paint::bold, fmt::format("{:<14} {:>6} {:>8} {:>9} {:>8} {:>8} {:>10}   verified", "case",
                               "GB/s", "ceiling", "spread", "CPU-s/GB", "pinned", "first call"));
  text += "\n";
  for (const BenchCase& result : run.cases) {
    const Paint paint = result.failure            ? Paint::bad
                        : !result.skipped.empty() ? Paint::faint
                                                  : Paint::plain;
    text += run.terminal.paint(paint, line_of(result)) + "\n";
  }
  text += run.terminal.paint(
      Paint::faint,
      "ceiling: share of what the same run reached without the library; spread: (max - min) / "
      "median\n");
  run.terminal.print(text);
}

void print_limits(const BenchRun& run) {
  std::vector<std::pair<std::string, std::vector<std::string>>> limits;
  std::vector<std::string> unexplained;
  std::vector<std::string> unsteady;
  for (const BenchCase& result : run.cases) {
    if (!result.measured()) continue;
    const std::string limit = limit_of(run, result);
    if (result.spread > largest_spread) {
      unsteady.push_back(result.name);
      continue;
    }
    if (limit.empty()) {
      unexplained.push_back(fmt::format("{} ({})", result.name, share_text(result)));
      continue;
    }
    const auto found =
        std::ranges::find(limits, limit, [](const auto& entry) { return entry.first; });
    if (found != limits.end()) {
      found->second.push_back(result.name);
    } else {
      limits.push_back({limit, {result.name}});
    }
  }
  std::string text = "\n";
  for (const auto& [limit, names] : limits) {
    const bool single = limit == "link" || limit == "disk" || limit == "CPU";
    text += fmt::format("Limited by {}{}: {}.\n", single ? "the " : "", limit, join(names));
  }
  if (!unexplained.empty()) {
    text += fmt::format("Below what this machine can do, so by Straightway itself: {}.\n",
                        join(unexplained));
  }
  if (!unsteady.empty()) {
    text +=
        fmt::format("The runs differ too much to say, as on a busy machine: {}.\n", join(unsteady));
  }
  run.terminal.print(text);
}

}  // namespace straightway::tools
