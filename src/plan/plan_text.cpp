// A plan for people: what will be done, what decided it, and what was not done and why.

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "plan/effort.hpp"
#include "plan/planner.hpp"
#include "plan/runs.hpp"
#include "plan/units.hpp"
#include "straightway/plan.hpp"

namespace straightway {
namespace {

using plan::format_bytes;

// One row under the headline. amount is empty where there is none; a loose row has a long label and
// stands outside the columns.
struct Line {
  std::string label;
  std::string amount;
  std::string text;
  bool loose = false;
};

std::string render(const std::string& headline, const std::vector<Line>& lines) {
  std::size_t label_width = 0;
  std::size_t amount_width = 0;
  for (const Line& line : lines) {
    if (!line.loose) label_width = std::max(label_width, line.label.size());
    amount_width = std::max(amount_width, line.amount.size());
  }
  const char* gap = amount_width == 0 ? "" : "  ";
  std::string text = headline + '\n';
  for (const Line& line : lines) {
    text += line.loose ? fmt::format("  {}: {}\n", line.label, line.text)
                       : fmt::format("  {:<{}}{}{:>{}}  {}\n", line.label, label_width, gap,
                                     line.amount, amount_width, line.text);
  }
  return text;
}

std::string plural(std::uint64_t n, const char* noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string why(const Plan& plan, Reason reason, Route route) {
  return plan::sentence(reason, route, plan.file.get(), plan.machine.get(), plan.settings.get(),
                        plan.peer.get());
}

// A path may hold anything; a terminal must not obey it.
std::string printable(std::string_view path) {
  std::string text(path);
  std::ranges::replace_if(text, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, '?');
  return text;
}

std::string memory_name(const Plan& plan) {
  if (plan.request.memory.space == SpaceKind::host) return "host memory";
  if (plan.request.memory.space == SpaceKind::peer) {
    return "memory of PCI device " + (plan.peer ? plan.peer->device : std::string("unknown"));
  }
  const bool simulated = plan::machine_of(plan).cuda_simulated;
  return fmt::format("cuda:{}{}", plan.request.memory.device, simulated ? " (simulated)" : "");
}

std::string headline(const Plan& plan) {
  const Request& request = plan.request;
  const std::string size = format_bytes(request.file.size_bytes);
  const std::string path = printable(plan::file_of(plan).path);
  std::string text = request.direction == Direction::read
                         ? fmt::format("read {} of '{}' into {}", size, path, memory_name(plan))
                         : fmt::format("write {} from {} to '{}'", size, memory_name(plan), path);
  if (request.file.offset != 0) text += fmt::format(", offset {}", request.file.offset);
  if (request.door == Door::kvikio) text += ", through the KvikIO door";
  if (request.door == Door::cufile) text += ", through the cuFile door";
  return text;
}

std::string pieces(const Cut& cut, const char* noun) {
  if (cut.count == 0) return fmt::format("no {}s", noun);
  const std::uint64_t last_bytes = cut.piece(cut.count - 1).size_bytes;
  if (cut.count == 1) return fmt::format("1 {} of {}", noun, format_bytes(last_bytes));
  std::string text = fmt::format("{} {}s of {}", cut.count, noun, format_bytes(cut.piece_bytes));
  if (last_bytes != cut.piece_bytes) {
    text += fmt::format(" (the last of {})", format_bytes(last_bytes));
  }
  return text;
}

void add_front(std::vector<Line>& lines, const Plan& plan) {
  const FrontDecision& front = plan.front;
  if (!front.used) return;
  const char* engine = front.to_cufile ? "to cuFile" : "to POSIX";
  const char* where = front.on_caller_thread ? " on the caller's thread" : "";
  lines.push_back({"front layer", "",
                   fmt::format("{} {}{}: {}", pieces(front.tasks, "task"), engine, where,
                               why(plan, front.reason, Route::buffered))});
}

std::string cufile_requests(const Plan& plan) {
  const CufileDecision& cufile = plan.cufile;
  const std::uint64_t n = plan.front.used ? plan.front.tasks.count : 1;
  if (n <= 1) return fmt::format("1 request in {}", pieces(cufile.parts, "part"));
  std::string text = fmt::format("{} requests, each in {}", n, pieces(cufile.parts, "part"));
  const Cut& last = cufile.last_parts;
  if (last.size_bytes != cufile.parts.size_bytes) {
    text += fmt::format(", the last in {}", pieces(last, "part"));
  }
  return text;
}

void add_cufile(std::vector<Line>& lines, const Plan& plan) {
  const CufileDecision& cufile = plan.cufile;
  if (plan.request.door == Door::straightway) return;
  std::string text = "sees nothing of this request";
  if (cufile.refused) {
    text = "refuses the file: " + why(plan, cufile.reason, Route::staged);
  } else if (cufile.used) {
    text = cufile_requests(plan) + ": " + why(plan, cufile.reason, Route::staged);
  }
  lines.push_back({"cuFile layer", "", text});
  const LayerCounters& count = cufile.counters;
  lines.push_back({"its counters", "",
                   fmt::format("n={} nvfs={} p2pdma={} posix={}", count.n, count.nvfs, count.p2pdma,
                               count.posix)});
}

// The storage side of a run.
const char* storage_side(const Run& run) {
  return run.direct_io ? "direct I/O" : "through the page cache";
}

void add_runs(std::vector<Line>& lines, const Plan& plan) {
  for (std::size_t i = 0; i < plan.run_count; ++i) {
    const Run& run = plan.runs[i];
    const std::uint64_t count = segment_count(run);
    std::string segments = plural(count, "segment");
    if (count > 1) segments += " of " + format_bytes(run.segment_bytes);
    const std::string source = run.route == Route::pinned_cache
                                   ? format_bytes(plan.pin_bytes) + " of the file are pinned"
                                   : storage_side(run);
    lines.push_back(
        {to_string(run.route), format_bytes(run.file.size_bytes),
         fmt::format("{}, {}: {}", segments, source, why(plan, run.reason, run.route))});
  }
}

// The rule by which cold MiB will be read, and what a look at the first window showed.
void add_cold(std::vector<Line>& lines, const Plan& plan) {
  for (std::size_t i = 0; i < plan.run_count; ++i) {
    const Run& run = plan.runs[i];
    if (run.cold == ColdWay::same) continue;
    lines.push_back({"page cache", "",
                     fmt::format("decided per MiB by what is in it: hot from it; cold: {}",
                                 why(plan, run.cold_reason, run.route))});
    const CacheFound& found = plan.first_window;
    if (!found.looked()) continue;
    const auto looked = found.hot_bytes + found.cold_bytes + found.unknown_bytes;
    lines.push_back(
        {"now", format_bytes(looked),
         found.unknown_bytes != 0
             ? std::string("the kernel does not tell what of it is in the page cache")
             : fmt::format("of its start: {} hot, {} cold", format_bytes(found.hot_bytes),
                           format_bytes(found.cold_bytes))});
  }
}

void add_effort(std::vector<Line>& lines, const Plan& plan) {
  const auto text = plan::describe(plan::effort_of(plan), plan::settings_of(plan));
  if (!text.empty()) lines.push_back({"copiers", "", text});
}

// What a read cannot deliver because the file ends.
void add_end_of_file(std::vector<Line>& lines, const Plan& plan) {
  const Request& request = plan.request;
  if (plan.failure != Reason::none || request.file.size_bytes == 0) return;
  const std::uint64_t there = plan::reachable(request).size_bytes;
  if (there == request.file.size_bytes) return;
  lines.push_back({"short", format_bytes(request.file.size_bytes - there),
                   fmt::format("will be missing: the file ends at {}", request.file_size_bytes)});
}

// Routes that share a sentence share a line, below those that have one of their own.
void add_refusals(std::vector<Line>& lines, const Plan& plan) {
  std::vector<Line> refusals;
  for (const Route route : all_routes) {
    const Reason reason = plan.refused[index(route)];
    if (reason == Reason::none) continue;
    const std::string text = why(plan, reason, route);
    const auto same = std::ranges::find(refusals, text, &Line::text);
    if (same != refusals.end()) {
      same->label += fmt::format(", {}", to_string(route));
      same->loose = true;
    } else {
      refusals.push_back({fmt::format("not {}", to_string(route)), "", text});
    }
  }
  std::ranges::stable_partition(refusals, [](const Line& line) { return !line.loose; });
  lines.insert(lines.end(), refusals.begin(), refusals.end());
}

class SettingsLine {
 public:
  template <class T>
  void add(const char* name, const Setting<T>& setting, const std::string& value) {
    if (setting.origin == Origin::built_in) return;
    if (!text_.empty()) text_ += ", ";
    text_ += fmt::format("{}={} ({})", name, value, to_string(setting.origin));
  }
  void add(const char* name, const Setting<bool>& setting) {
    add(name, setting, setting.value ? "true" : "false");
  }
  void add(const char* name, const Setting<std::uint64_t>& setting) {
    add(name, setting, std::to_string(setting.value));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void add_settings(std::vector<Line>& lines, const Plan& plan) {
  const Settings& settings = plan::settings_of(plan);
  const FrontSettings& front = settings.front;
  const CufileSettings& cufile = settings.cufile;
  SettingsLine line;
  if (plan.request.door == Door::straightway) {
    line.add("policy", settings.policy, to_string(settings.policy.value));
    line.add("cache", settings.cache, to_string(settings.cache.value));
  }
  if (plan.request.door == Door::kvikio) {
    line.add("compat_mode", front.compat_mode, to_string(front.compat_mode.value));
    line.add("gds_threshold", front.gds_threshold_bytes);
    line.add("task_size", front.task_size_bytes);
  }
  if (plan.cufile.used) {
    line.add("force_compat_mode", cufile.force_compat_mode);
    line.add("allow_compat_mode", cufile.allow_compat_mode);
    line.add("use_pci_p2pdma", cufile.use_pci_p2pdma);
    line.add("parallel_io", cufile.parallel_io);
    line.add("max_io_threads", cufile.max_io_threads);
    line.add("max_request_parallelism", cufile.max_request_parallelism);
    line.add("min_io_threshold_size_kb", cufile.min_io_threshold_size_kb);
    line.add("max_direct_io_size_kb", cufile.max_direct_io_size_kb);
  }
  if (!line.text().empty()) lines.push_back({"settings", "", line.text()});
}

}  // namespace

std::string Plan::to_text() const {
  std::vector<Line> lines;
  add_front(lines, *this);
  add_cufile(lines, *this);
  if (failure != Reason::none) {
    const Route route = request.memory.space == SpaceKind::host   ? Route::direct_host
                        : request.memory.space == SpaceKind::peer ? Route::p2pdma
                                                                  : Route::nvfs;
    lines.push_back({"cannot be done", "", why(*this, failure, route)});
  } else if (run_count == 0) {
    const bool begins_behind = request.direction == Direction::read && request.file.offset > 0 &&
                               request.file.offset >= request.file_size_bytes;
    lines.push_back(
        {"nothing to move", "",
         begins_behind ? "the file ends before this offset" : "zero bytes were asked for"});
  }
  add_runs(lines, *this);
  add_cold(lines, *this);
  add_effort(lines, *this);
  if (run_count > 0) add_end_of_file(lines, *this);
  add_refusals(lines, *this);
  add_settings(lines, *this);
  return render(headline(*this), lines);
}

}  // namespace straightway
