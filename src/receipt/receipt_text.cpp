// The receipt for people.

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <string_view>

#include "os/cufile_codes.hpp"
#include "plan/planner.hpp"
#include "plan/units.hpp"
#include "receipt/duration.hpp"
#include "receipt/shown_settings.hpp"
#include "straightway/receipt.hpp"

namespace straightway {
namespace {

using plan::format_bytes;

// One line: what, how much, and all that is to say about it.
struct Line {
  std::string name;
  std::string bytes;
  std::string text;
};

// A path may hold anything; a terminal gets no control characters.
std::string quoted(std::string_view path) {
  std::string text = "'";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      text += fmt::format("\\x{:02x}", byte);
    } else {
      text += c;
    }
  }
  return text + "'";
}

std::string place(const Receipt& receipt) {
  if (receipt.memory.space == SpaceKind::host) return "host memory";
  if (receipt.memory.space == SpaceKind::peer) {
    return "memory of PCI device " + (receipt.peer ? receipt.peer->device : std::string("unknown"));
  }
  const bool simulated = receipt.machine && receipt.machine->cuda_simulated;
  return fmt::format("cuda:{}{}", receipt.memory.device, simulated ? " (simulated)" : "");
}

std::string headline(const Receipt& receipt) {
  std::string text = format_bytes(receipt.moved_bytes);
  if (receipt.ranges) text += fmt::format(" in {} ranges", receipt.ranges->offset.size());
  text += receipt.direction == Direction::read ? " into " : " from ";
  text += place(receipt);
  if (receipt.direction == Direction::write && receipt.file) {
    text += " to " + quoted(receipt.file->path);
  }
  const std::uint64_t time_ns = receipt::duration_ns(receipt.times);
  if (time_ns == 0) return text;
  text += " in " + plan::format_duration_ns(time_ns);
  if (receipt.moved_bytes != 0) text += ", " + plan::format_rate(receipt.moved_bytes, time_ns);
  return text;
}

bool used(const RouteShare& share) { return share.bytes != 0 || share.segments != 0; }

// Where the bytes came from. The witness speaks of the whole request, so with several routes it
// cannot say which of them the disk served.
std::string source(const Receipt& receipt) {
  if (receipt.direction == Direction::write) return "";
  if (!receipt.disk_measured) return "source not measured";
  const char* from = receipt.disk_bytes == 0                     ? "from cache"
                     : receipt.disk_bytes >= receipt.moved_bytes ? "from disk"
                                                                 : "partly from disk";
  return fmt::format("{} (observed: {} read from the disk)", from,
                     format_bytes(receipt.disk_bytes));
}

const char* witness_text(Witness witness) {
  switch (witness) {
    case Witness::own_copy:
      return "own copy";
    case Witness::thread_io:
      return "I/O counters of the threads";
    case Witness::vendor_library:
      return "by the vendor's library";
    case Witness::kernel:
      return "the kernel accepted it, which proves no device";
    case Witness::trial:
      return "I/O counters of the threads, and a poisoned block that arrived";
    case Witness::nvidia_fs:
      return "nvidia-fs counted exactly these calls and bytes";
    case Witness::none:
      break;
  }
  return "no witness";
}

std::string evidence_text(const Evidence& evidence) {
  if (evidence.kind == EvidenceKind::none) return "no evidence";
  std::string text =
      fmt::format("{} ({}", to_string(evidence.kind), witness_text(evidence.witness));
  if (evidence.scope == Scope::process || evidence.scope == Scope::machine) {
    text += fmt::format(", of the whole {}", to_string(evidence.scope));
  }
  return text + ")";
}

// An own copy goes without saying where the source was observed.
bool says_more(const Receipt& receipt, const Evidence& evidence) {
  const bool plain =
      evidence.kind == EvidenceKind::observed && evidence.witness == Witness::own_copy;
  return !plain || receipt.direction == Direction::write || !receipt.disk_measured;
}

bool is_obvious(Reason reason) {
  return reason == Reason::none || reason == Reason::host_memory ||
         reason == Reason::device_memory || reason == Reason::pinned;
}

bool is_copied(Route route) { return route == Route::staged || route == Route::buffered; }

// The route that moved most, beside which the figures of the whole request stand.
Route main_route(const Receipt& receipt) {
  const auto most =
      std::max_element(receipt.routes.begin(), receipt.routes.end(),
                       [](const RouteShare& a, const RouteShare& b) { return a.bytes < b.bytes; });
  return static_cast<Route>(most - receipt.routes.begin());
}

std::string threads_text(const Receipt& receipt, Route route) {
  if (receipt.threads == 0 || route != main_route(receipt) || route == Route::pinned_cache) {
    return "";
  }
  return fmt::format("{} {}{}", receipt.threads, is_copied(route) ? "copier" : "thread",
                     receipt.threads == 1 ? "" : "s");
}

std::string pinned_text(const Receipt& receipt, Route route) {
  if (route == Route::pinned_cache) {
    return format_bytes(receipt.pin_bytes) + " of the file are pinned";
  }
  if (receipt.pinned_bytes == 0 || route != Route::staged) return "";
  return format_bytes(receipt.pinned_bytes) + " pinned";
}

std::string reason_text(const Receipt& receipt, Reason reason, Route route) {
  return plan::sentence(reason, route, receipt.file.get(), receipt.machine.get(),
                        receipt.settings.get(), receipt.peer.get());
}

std::string join(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text += between;
    text += part;
  }
  return text;
}

Line route_line(const Receipt& receipt, Route route) {
  const RouteShare& share = receipt.routes[index(route)];
  std::vector<std::string> parts = {source(receipt)};
  parts.push_back(join({threads_text(receipt, route), pinned_text(receipt, route)}, ", "));
  if (says_more(receipt, share.evidence)) parts.push_back(evidence_text(share.evidence));
  if (!is_obvious(share.reason)) parts.push_back(reason_text(receipt, share.reason, route));
  return {to_string(route), format_bytes(share.bytes), join(parts, "   ")};
}

bool is_inapplicable(Reason reason) {
  return reason == Reason::space_is_host || reason == Reason::space_is_device;
}

// Routes that share a sentence share a line.
void add_refusals(std::vector<Line>& lines, const Receipt& receipt) {
  const auto first = static_cast<std::ptrdiff_t>(lines.size());
  for (const Route route : all_routes) {
    const Reason reason = receipt.refused[index(route)];
    if (reason == Reason::none || is_inapplicable(reason)) continue;
    std::string text = reason_text(receipt, reason, route);
    const auto same = std::find_if(lines.begin() + first, lines.end(),
                                   [&](const Line& line) { return line.text == text; });
    if (same != lines.end()) {
      same->name += fmt::format(", {}", to_string(route));
    } else {
      lines.push_back({fmt::format("not {}", to_string(route)), "", std::move(text)});
    }
  }
}

std::vector<Line> route_lines(const Receipt& receipt) {
  std::vector<Line> lines;
  for (const Route route : all_routes) {
    if (used(receipt.routes[index(route)])) lines.push_back(route_line(receipt, route));
  }
  add_refusals(lines, receipt);
  return lines;
}

std::string aligned(const std::vector<Line>& lines) {
  std::size_t name_width = 0;
  std::size_t bytes_width = 0;
  for (const Line& line : lines) {
    name_width = std::max(name_width, line.name.size());
    bytes_width = std::max(bytes_width, line.bytes.size());
  }
  std::string text;
  for (const Line& line : lines) {
    text += fmt::format("  {:<{}} {:<{}}  {}", line.name, name_width, line.bytes, bytes_width,
                        line.text);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

std::string errno_text(int code) {
  if (os::is_cufile_code(code)) return os::cufile_text(code);
  const char* name = ::strerrorname_np(code);
  if (name == nullptr) return fmt::format("error {}", code);
  return fmt::format("{} ({})", name, ::strerrordesc_np(code));
}

// What the segments fell back from, where a route was given up as a whole.
std::string given_up(const Receipt& receipt) {
  for (const Route route : all_routes) {
    if (receipt.refused[index(route)] == Reason::fell_back) {
      return std::string(" from ") + to_string(route);
    }
  }
  return "";
}

// What the page cache had before the bytes moved. Where all was hot, that is said already.
std::string found_line(const Receipt& receipt) {
  const CacheFound& found = receipt.found;
  if (found.cold_bytes == 0 && found.unknown_bytes == 0) return "";
  std::string text = fmt::format("  found {} hot, {} cold", format_bytes(found.hot_bytes),
                                 format_bytes(found.cold_bytes));
  if (found.unknown_bytes != 0) {
    text += fmt::format(", {} unknown", format_bytes(found.unknown_bytes));
  }
  if (found.cold_bytes != 0 && receipt.cold_reason != Reason::none) {
    text += "; cold: " + reason_text(receipt, receipt.cold_reason, Route::buffered);
  }
  return text + '\n';
}

std::string event_lines(const Receipt& receipt) {
  std::string text = found_line(receipt);
  if (receipt.ended_early) {
    text += fmt::format("  short: end of file at {}, {} wanted\n", receipt.end_of_file,
                        format_bytes(receipt.wanted_bytes));
  }
  if (receipt.retries != 0) {
    text += fmt::format("  {} piece{} submitted again (interrupted or short)\n", receipt.retries,
                        receipt.retries == 1 ? "" : "s");
  }
  if (receipt.fallbacks != 0) {
    text += fmt::format("  {} segment{} fell back{}, first after {}\n", receipt.fallbacks,
                        receipt.fallbacks == 1 ? "" : "s", given_up(receipt),
                        errno_text(receipt.fallback_code));
  }
  if (receipt.layer.n != 0) {
    text += fmt::format("  cuFile layer: n={} nvfs={} p2pdma={} posix={}\n", receipt.layer.n,
                        receipt.layer.nvfs, receipt.layer.p2pdma, receipt.layer.posix);
  }
  return text;
}

std::string value_text(const receipt::ShownSetting& setting) {
  if (const auto* flag = std::get_if<bool>(&setting.value)) return *flag ? "true" : "false";
  if (const auto* count = std::get_if<std::uint64_t>(&setting.value)) return std::to_string(*count);
  return std::get<std::string>(setting.value);
}

std::string settings_line(const Receipt& receipt) {
  if (!receipt.settings) return "";
  std::vector<std::string> parts;
  for (const auto& setting : receipt::shown_settings(*receipt.settings, receipt.door)) {
    if (setting.origin == Origin::built_in) continue;
    parts.push_back(
        fmt::format("{}={} ({})", setting.name, value_text(setting), to_string(setting.origin)));
  }
  return parts.empty() ? "" : "  settings: " + join(parts, ", ") + '\n';
}

}  // namespace

std::string Receipt::to_text() const {
  return headline(*this) + '\n' + aligned(route_lines(*this)) + event_lines(*this) +
         settings_line(*this);
}

}  // namespace straightway
