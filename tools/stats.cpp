// straightway stats: the ledgers of running processes, and what our libcufile.so.0 counts in them.

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <thread>

#include "arguments.hpp"
#include "commands.hpp"
#include "cufile/gds_stats.hpp"
#include "cufile/published_reader.hpp"
#include "interrupt.hpp"
#include "json.hpp"
#include "plan/units.hpp"
#include "receipt/ledger.hpp"

namespace straightway::tools {
namespace {

std::uint64_t bytes_of(const receipt::LedgerSnapshot& snapshot, Direction direction) {
  std::uint64_t sum = 0;
  for (const auto& route : snapshot.bytes) sum += route[static_cast<std::size_t>(direction)];
  return sum;
}

// Another process's own words: nothing in them may steer a terminal.
std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return text;
}

// Watched, each look is one line, so that a reader can take them one by one.
void print_json(const Json& json, const StatsOptions& options, Terminal& terminal) {
  terminal.print_line(!options.watch.empty()
                          ? json.dump(-1, ' ', false, Json::error_handler_t::replace)
                          : dump(json));
}

// The processes that have one. A process that ends while we look is left out.
int list_all(const StatsOptions& options, Terminal& terminal) {
  Json json = Json::array();
  std::string text;
  for (const std::int64_t pid : receipt::find_ledgers()) {
    const auto snapshot = receipt::read_ledger(pid);
    if (!snapshot) continue;
    json.push_back(parse_json(receipt::to_json(*snapshot)));
    text += fmt::format("{:>8}  {:>12}  {:>12}  {:>6}  {}\n", pid,
                        plan::format_bytes(bytes_of(*snapshot, Direction::read)),
                        plan::format_bytes(bytes_of(*snapshot, Direction::write)),
                        snapshot->errors[0] + snapshot->errors[1], printable(snapshot->program));
  }
  if (options.json) {
    print_json(json, options, terminal);
  } else if (text.empty()) {
    terminal.print("No process of yours keeps statistics now.\n");
  } else {
    terminal.print(
        terminal.paint(Paint::bold, fmt::format("{:>8}  {:>12}  {:>12}  {:>6}  {}", "PID", "READ",
                                                "WRITTEN", "ERRORS", "PROGRAM")) +
        "\n" + text);
  }
  return 0;
}

int show_one(const StatsOptions& options, Terminal& terminal) {
  const auto snapshot = receipt::read_ledger(options.pid);
  if (!snapshot) return terminal.fail(snapshot.error(), options.json);
  if (options.json) {
    print_json(parse_json(receipt::to_json(*snapshot)), options, terminal);
    return 0;
  }
  const std::string text = receipt::to_text(*snapshot);
  terminal.print(text + (text.ends_with('\n') ? "" : "\n"));
  return 0;
}

Error counts_too_little(std::int64_t pid, std::uint64_t counted, const std::string& wanted) {
  Error error = usage_error(
      fmt::format("show level {} of the cuFile statistics of process {}", wanted, pid),
      counted == 0 ? "it counts nothing" : fmt::format("it counts at level {}", counted),
      "start it with CUFILE_STATS_LEVEL=3, or with profile.cufile_stats in its cufile.json");
  error.kind = ErrorKind::unsupported;
  return error;
}

int show_gds_stats(const StatsOptions& options, Terminal& terminal) {
  const auto counters = cufile::read_published(options.pid);
  if (!counters) return terminal.fail(counters.error(), options.json);
  const auto counted = (*counters)->level;
  const std::string level = options.level.empty() ? std::to_string(counted) : options.level;
  if (counted == 0 || level > std::to_string(counted)) {
    const std::string wanted = options.level.empty() ? "1" : level;
    return terminal.fail(counts_too_little(options.pid, counted, wanted), options.json);
  }
  terminal.print(cufile::gds_stats_text(**counters, level.front() - '0'));
  return 0;
}

bool as_gds_stats(const StatsOptions& options) { return options.format == "gds_stats"; }

int look_once(const StatsOptions& options, Terminal& terminal) {
  if (as_gds_stats(options)) return show_gds_stats(options, terminal);
  return options.pid == 0 ? list_all(options, terminal) : show_one(options, terminal);
}

bool is_gone(const StatsOptions& options) {
  if (options.pid == 0) return false;
  return as_gds_stats(options) ? !cufile::read_published(options.pid)
                               : !receipt::read_ledger(options.pid);
}

Result<double> parse_seconds(const std::string& text) {
  double seconds = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, seconds);
  if (code == std::errc() && stop == end && seconds >= 0.01 && seconds <= 86400) return seconds;
  return usage_error("use --watch=" + text, "it is no number of seconds",
                     "write --watch, or --watch=2 with 0.01 to 86400");
}

// Wakes early for Ctrl-C.
void pause(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (interrupted() == 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

// Watching ends with Ctrl-C, which is its ordinary end, or with the watched process.
int run_stats(const StatsOptions& options, Terminal& terminal) {
  if (options.watch.empty()) return look_once(options, terminal);
  const auto seconds = parse_seconds(options.watch);
  if (!seconds) return terminal.fail(seconds.error(), options.json);
  notice_interrupts();
  bool first = true;
  while (interrupted() == 0 && !terminal.broken()) {
    if (!first && is_gone(options)) {
      terminal.warn(fmt::format("process {} has ended", options.pid));
      return 0;
    }
    if (terminal.is_terminal() && !options.json) {
      terminal.print("\033[H\033[2J");
    } else if (!first && !options.json) {
      terminal.print("\n");
    }
    if (const int code = look_once(options, terminal); code != 0) return code;
    first = false;
    pause(*seconds);
  }
  return 0;
}

}  // namespace straightway::tools
