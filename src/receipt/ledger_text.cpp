// The ledger for people and for programs.

#include <fmt/format.h>
#include <time.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "plan/units.hpp"
#include "receipt/ledger.hpp"
#include "receipt/ledger_layout.hpp"

namespace straightway::receipt {
namespace {

using nlohmann::ordered_json;

constexpr std::array<Direction, 2> directions = {Direction::read, Direction::write};
constexpr std::uint64_t endless = std::numeric_limits<std::uint64_t>::max();

std::uint64_t plus(std::uint64_t a, std::uint64_t b) { return a > endless - b ? endless : a + b; }

LedgerSnapshot::Cell total(const LedgerSnapshot& snapshot, std::size_t way) {
  LedgerSnapshot::Cell sum;
  for (const auto& cells : snapshot.sizes) {
    sum.requests = plus(sum.requests, cells[way].requests);
    sum.bytes = plus(sum.bytes, cells[way].bytes);
    sum.time_ns = plus(sum.time_ns, cells[way].time_ns);
  }
  return sum;
}

// The class below whose limit `percent` of the requests lie; nullopt where there were none.
std::optional<std::size_t> percentile_class(const LedgerSnapshot& snapshot, std::size_t way,
                                            std::uint64_t percent) {
  std::uint64_t count = 0;
  for (const auto& latency : snapshot.latencies) count = plus(count, latency[way]);
  if (count == 0) return std::nullopt;
  // ceil(count * percent / 100), which must not overflow
  const std::uint64_t rank = count / 100 * percent + (count % 100 * percent + 99) / 100;
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < latency_class_count; ++i) {
    seen = plus(seen, snapshot.latencies[i][way]);
    if (seen >= rank) return i;
  }
  return latency_class_count - 1;
}

std::string latency_text(std::optional<std::size_t> i) {
  if (!i) return "-";
  if (*i + 1 == latency_class_count) {
    return ">= " + plan::format_duration_ns(latency_class_limit_us(*i - 1) * 1000);
  }
  return "< " + plan::format_duration_ns(latency_class_limit_us(*i) * 1000);
}

std::string size_text(std::size_t i) {
  if (i + 1 == size_class_count) return ">= " + plan::format_bytes(size_class_limit_bytes(i - 1));
  return "< " + plan::format_bytes(size_class_limit_bytes(i));
}

std::string start_text(std::uint64_t started_ns) {
  const auto seconds = static_cast<time_t>(started_ns / 1'000'000'000u);
  tm parts{};
  char text[32] = "?";
  if (::gmtime_r(&seconds, &parts) != nullptr) {
    ::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts);
  }
  return text;
}

std::string directions_table(const LedgerSnapshot& snapshot) {
  std::string text = fmt::format("\n  {:<13}{:>10}{:>12}{:>12}{:>11}{:>11}{:>8}", "", "requests",
                                 "moved", "rate", "p50", "p99", "errors");
  for (const Direction direction : directions) {
    const auto way = static_cast<std::size_t>(direction);
    const LedgerSnapshot::Cell sum = total(snapshot, way);
    text += fmt::format("\n  {:<13}{:>10}{:>12}{:>12}{:>11}{:>11}{:>8}", to_string(direction),
                        sum.requests, plan::format_bytes(sum.bytes),
                        plan::format_rate(sum.bytes, sum.time_ns),
                        latency_text(percentile_class(snapshot, way, 50)),
                        latency_text(percentile_class(snapshot, way, 99)), snapshot.errors[way]);
  }
  return text;
}

std::string routes_table(const LedgerSnapshot& snapshot) {
  std::string rows;
  for (const Route route : all_routes) {
    for (const Direction direction : directions) {
      const auto way = static_cast<std::size_t>(direction);
      const std::uint64_t segments = snapshot.segments[index(route)][way];
      const std::uint64_t bytes = snapshot.bytes[index(route)][way];
      if (segments == 0 && bytes == 0) continue;
      rows += fmt::format("\n  {:<13}{:>10}{:>12}{:>12}", to_string(route), to_string(direction),
                          plan::format_bytes(bytes), segments);
    }
  }
  if (rows.empty()) return rows;
  return fmt::format("\n\n  {:<13}{:>10}{:>12}{:>12}", "route", "", "moved", "segments") + rows;
}

std::string sizes_table(const LedgerSnapshot& snapshot) {
  std::string rows;
  for (std::size_t i = 0; i < size_class_count; ++i) {
    for (const Direction direction : directions) {
      const LedgerSnapshot::Cell& cell = snapshot.sizes[i][static_cast<std::size_t>(direction)];
      if (cell.requests == 0) continue;
      rows += fmt::format("\n  {:<13}{:>10}{:>12}{:>12}{:>12}", size_text(i), to_string(direction),
                          plan::format_bytes(cell.bytes), cell.requests,
                          plan::format_rate(cell.bytes, cell.time_ns));
    }
  }
  if (rows.empty()) return rows;
  return fmt::format("\n\n  {:<13}{:>10}{:>12}{:>12}{:>12}", "request size", "", "moved",
                     "requests", "rate") +
         rows;
}

std::string events_line(const LedgerSnapshot& snapshot) {
  if (snapshot.retries == 0 && snapshot.fallbacks == 0 && snapshot.short_reads == 0) return "";
  return fmt::format("\n\n  submitted again: {}, fell back: {}, ended early: {}", snapshot.retries,
                     snapshot.fallbacks, snapshot.short_reads);
}

std::string layer_line(const LayerCounters& layer) {
  if (layer.n == 0) return "";
  return fmt::format("\n\n  cuFile layer: n={} nvfs={} p2pdma={} posix={}", layer.n, layer.nvfs,
                     layer.p2pdma, layer.posix);
}

ordered_json limit_json(std::uint64_t limit) {
  return limit == endless ? ordered_json(nullptr) : ordered_json(limit);
}

ordered_json routes_json(const LedgerSnapshot& snapshot) {
  ordered_json rows = ordered_json::array();
  for (const Route route : all_routes) {
    for (const Direction direction : directions) {
      const auto way = static_cast<std::size_t>(direction);
      rows.push_back({{"route", to_string(route)},
                      {"direction", to_string(direction)},
                      {"bytes", snapshot.bytes[index(route)][way]},
                      {"segments", snapshot.segments[index(route)][way]}});
    }
  }
  return rows;
}

ordered_json sizes_json(const LedgerSnapshot& snapshot) {
  ordered_json rows = ordered_json::array();
  for (std::size_t i = 0; i < size_class_count; ++i) {
    for (const Direction direction : directions) {
      const LedgerSnapshot::Cell& cell = snapshot.sizes[i][static_cast<std::size_t>(direction)];
      rows.push_back({{"below_bytes", limit_json(size_class_limit_bytes(i))},
                      {"direction", to_string(direction)},
                      {"requests", cell.requests},
                      {"bytes", cell.bytes},
                      {"time_ns", cell.time_ns}});
    }
  }
  return rows;
}

ordered_json latency_json(const LedgerSnapshot& snapshot, std::size_t way) {
  ordered_json buckets = ordered_json::array();
  for (std::size_t i = 0; i < latency_class_count; ++i) {
    buckets.push_back({{"below_us", limit_json(latency_class_limit_us(i))},
                       {"requests", snapshot.latencies[i][way]}});
  }
  const auto percentile = [&](std::uint64_t percent) {
    const std::optional<std::size_t> i = percentile_class(snapshot, way, percent);
    return i ? limit_json(latency_class_limit_us(*i)) : ordered_json(nullptr);
  };
  return {{"p50_below_us", percentile(50)}, {"p99_below_us", percentile(99)}, {"buckets", buckets}};
}

ordered_json totals_json(const LedgerSnapshot& snapshot, std::size_t way) {
  const LedgerSnapshot::Cell sum = total(snapshot, way);
  return {{"requests", sum.requests},
          {"bytes", sum.bytes},
          {"time_ns", sum.time_ns},
          {"errors", snapshot.errors[way]}};
}

}  // namespace

std::string to_text(const LedgerSnapshot& snapshot) {
  return fmt::format("{} (process {}), since {}", snapshot.program, snapshot.pid,
                     start_text(snapshot.started_ns)) +
         directions_table(snapshot) + routes_table(snapshot) + sizes_table(snapshot) +
         events_line(snapshot) + layer_line(snapshot.layer) + "\n";
}

std::string to_json(const LedgerSnapshot& snapshot) {
  const ordered_json json = {
      {"pid", snapshot.pid},
      {"program", snapshot.program},
      {"started_ns", snapshot.started_ns},
      {"read", totals_json(snapshot, 0)},
      {"write", totals_json(snapshot, 1)},
      {"routes", routes_json(snapshot)},
      {"sizes", sizes_json(snapshot)},
      {"latencies", {{"read", latency_json(snapshot, 0)}, {"write", latency_json(snapshot, 1)}}},
      {"retries", snapshot.retries},
      {"fallbacks", snapshot.fallbacks},
      {"short_reads", snapshot.short_reads},
      {"layer",
       {{"n", snapshot.layer.n},
        {"nvfs", snapshot.layer.nvfs},
        {"p2pdma", snapshot.layer.p2pdma},
        {"posix", snapshot.layer.posix}}}};
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace straightway::receipt
