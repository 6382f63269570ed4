#include "run_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "plan/units.hpp"

namespace straightway::tools {
namespace {

using File = receipt::RunSummary::File;
using Way = receipt::RunSummary::Way;
using Refusal = receipt::RunSummary::Refusal;
using plan::format_bytes;

constexpr std::size_t files_shown = 10;

std::string memory_text(const File& file) {
  if (file.space == SpaceKind::host) return "host memory";
  if (file.space == SpaceKind::peer) return "peer memory";
  return fmt::format("cuda:{}", file.device);
}

std::string name_of(const File& file) {
  if (file.is_rest) return "further files";
  return file.path.empty() ? "a file whose name was not recorded" : file.path;
}

std::string plural(std::uint64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

// Refusals that say no more than what kind of memory it is, or what was asked for.
bool says_something(const Refusal& refusal) {
  switch (refusal.reason) {
    case Reason::space_is_host:
    case Reason::space_is_device:
    case Reason::policy_forbids:
    case Reason::not_preferred:
    case Reason::not_pinned:
    case Reason::pinned_for_reads:
      return false;
    default:
      return true;
  }
}

std::string first_line(const File& file) {
  const bool read = file.direction == Direction::read;
  if (file.is_rest) {
    return fmt::format("  {} moved from and to {}, {}", format_bytes(file.moved_bytes),
                       name_of(file), plural(file.requests, "request"));
  }
  return fmt::format("  {} {} {} {} {} {}: {} of {} on average, {} each", to_string(file.direction),
                     format_bytes(file.moved_bytes), read ? "of" : "to", name_of(file),
                     read ? "into" : "from", memory_text(file), plural(file.requests, "request"),
                     format_bytes(file.wanted_bytes / std::max<std::uint64_t>(file.requests, 1)),
                     plan::format_rate(file.moved_bytes, file.time_ns));
}

std::string cache_line(const File& file) {
  std::string text;
  if (file.found.looked()) {
    text = fmt::format("found {} hot, {} cold", format_bytes(file.found.hot_bytes),
                       format_bytes(file.found.cold_bytes));
    if (file.found.unknown_bytes != 0) {
      text += fmt::format(", {} unknown", format_bytes(file.found.unknown_bytes));
    }
  }
  if (file.disk_unmeasured < file.requests) {
    text += fmt::format("{}{} read from the disk", text.empty() ? "" : "; ",
                        format_bytes(file.disk_bytes));
    if (file.disk_unmeasured > 0) {
      text += fmt::format(" (not measured for {})", plural(file.disk_unmeasured, "request"));
    }
  }
  return text;
}

std::string events_line(const File& file) {
  std::string text;
  const auto add = [&](std::uint64_t count, const char* what) {
    if (count != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  };
  add(file.retries, "submitted again");
  add(file.fallbacks, "fell back");
  add(file.short_reads, "ended early");
  return text;
}

std::string counters_line(const LayerCounters& layer) {
  if (layer.n == 0) return "";
  return fmt::format("cuFile counters: n={} nvfs={} p2pdma={} posix={}", layer.n, layer.nvfs,
                     layer.p2pdma, layer.posix);
}

std::string file_text(const File& file) {
  std::string text = first_line(file) + "\n";
  for (const Way& way : file.ways) {
    text += fmt::format("    {:<16} {:>10}  {}\n", to_string(way.route), format_bytes(way.bytes),
                        way.sentence);
  }
  for (const Refusal& refusal : file.refusals) {
    if (!says_something(refusal)) continue;
    text += fmt::format("    {:<16} {:>10}  {}\n", fmt::format("not {}", to_string(refusal.route)),
                        "", refusal.sentence);
  }
  for (const std::string& line : {cache_line(file), events_line(file), counters_line(file.layer)}) {
    if (!line.empty()) text += "    " + line + "\n";
  }
  return text;
}

std::uint64_t moved(const RunAccount& account, Direction direction) {
  std::uint64_t sum = 0;
  for (const File& file : account.summary.files) {
    if (file.direction == direction && !file.is_rest) sum += file.moved_bytes;
  }
  return sum;
}

std::string end_text(const RunAccount& account) {
  if (account.end.signal != 0) return fmt::format("ended by signal {}", account.end.signal);
  return fmt::format("ended with {}", account.end.exit_code);
}

std::string processes_text(std::size_t count) {
  return count == 1 ? "1 process" : fmt::format("{} processes", count);
}

std::string head_text(const RunAccount& account) {
  const auto& summary = account.summary;
  std::string text = fmt::format("straightway: {} {} after {:.2f} s: ", account.words.front(),
                                 end_text(account), account.seconds);
  if (summary.processes.empty()) {
    return text + "nothing went through Straightway\n";
  }
  text += fmt::format("{} read, {} written, by {}", format_bytes(moved(account, Direction::read)),
                      format_bytes(moved(account, Direction::write)),
                      processes_text(summary.processes.size()));
  if (summary.read_errors + summary.write_errors != 0) {
    text +=
        fmt::format(", {} failed", plural(summary.read_errors + summary.write_errors, "request"));
  }
  return text + "\n";
}

std::string rest_text(const RunAccount& account) {
  const auto& files = account.summary.files;
  if (files.size() <= files_shown) return "";
  std::uint64_t bytes = 0;
  for (std::size_t i = files_shown; i < files.size(); ++i) bytes += files[i].moved_bytes;
  return fmt::format("  and {} more of {} files, in the order of their bytes (--json has all)\n",
                     format_bytes(bytes), files.size() - files_shown);
}

Json way_json(const Way& way) {
  return {{"route", to_string(way.route)},
          {"reason", to_string(way.reason)},
          {"sentence", way.sentence},
          {"bytes", way.bytes},
          {"segments", way.segments}};
}

Json refusal_json(const Refusal& refusal) {
  return {{"route", to_string(refusal.route)},
          {"reason", to_string(refusal.reason)},
          {"sentence", refusal.sentence}};
}

Json file_json(const File& file) {
  Json ways = Json::array();
  for (const Way& way : file.ways) ways.push_back(way_json(way));
  Json refusals = Json::array();
  for (const Refusal& refusal : file.refusals) refusals.push_back(refusal_json(refusal));
  return {{"path", file.path},
          {"rest", file.is_rest},
          {"direction", to_string(file.direction)},
          {"door", to_string(file.door)},
          {"memory", file.space == SpaceKind::host ? "host" : memory_text(file)},
          {"requests", file.requests},
          {"wanted_bytes", file.wanted_bytes},
          {"moved_bytes", file.moved_bytes},
          {"time_ns", file.time_ns},
          {"routes", ways},
          {"refused", refusals},
          {"hot_bytes", file.found.hot_bytes},
          {"cold_bytes", file.found.cold_bytes},
          {"unknown_bytes", file.found.unknown_bytes},
          {"disk_bytes", file.disk_bytes},
          {"disk_unmeasured_requests", file.disk_unmeasured},
          {"retries", file.retries},
          {"fallbacks", file.fallbacks},
          {"short_reads", file.short_reads},
          {"layer",
           {{"n", file.layer.n},
            {"nvfs", file.layer.nvfs},
            {"p2pdma", file.layer.p2pdma},
            {"posix", file.layer.posix}}}};
}

}  // namespace

std::string run_text(const RunAccount& account) {
  std::string text = head_text(account);
  const auto& files = account.summary.files;
  for (std::size_t i = 0; i < std::min(files.size(), files_shown); ++i) text += file_text(files[i]);
  text += rest_text(account);
  const auto advice = run_advice(account);
  if (!advice.empty()) {
    text += account.summary.processes.empty() ? "  Why:\n" : "  What would be faster:\n";
  }
  for (const std::string& sentence : advice) text += "  - " + sentence + "\n";
  return text;
}

Json run_json(const RunAccount& account) {
  Json files = Json::array();
  for (const File& file : account.summary.files) files.push_back(file_json(file));
  Json processes = Json::array();
  for (const auto& process : account.summary.processes) {
    processes.push_back({{"pid", process.pid}, {"program", process.program}});
  }
  return {{"command", account.words},
          {"exit_code", account.end.exit_code},
          {"signal", account.end.signal == 0 ? Json(nullptr) : Json(account.end.signal)},
          {"seconds", account.seconds},
          {"obstacle", account.obstacle.empty() ? Json(nullptr) : Json(account.obstacle)},
          {"read_bytes", moved(account, Direction::read)},
          {"written_bytes", moved(account, Direction::write)},
          {"read_errors", account.summary.read_errors},
          {"write_errors", account.summary.write_errors},
          {"processes", processes},
          {"files", files},
          {"advice", run_advice(account)}};
}

}  // namespace straightway::tools
