#include "plan/units.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>

namespace straightway::plan {
namespace {

// Three significant digits, and 999.7 does not become "1000": the caller moves on to the next unit.
std::string three_digits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

template <std::size_t N>
std::string scaled(double value, const std::array<const char*, N>& units) {
  std::size_t i = 0;
  while (i + 1 < N && value >= 999.5) {
    value /= 1000;
    ++i;
  }
  return fmt::format("{} {}", three_digits(value), units[i]);
}

}  // namespace

std::string format_bytes(std::uint64_t size_bytes) {
  static constexpr std::array<const char*, 7> units = {"bytes", "KiB", "MiB", "GiB",
                                                       "TiB",   "PiB", "EiB"};
  if (size_bytes < 1024) return fmt::format("{} byte{}", size_bytes, size_bytes == 1 ? "" : "s");
  std::size_t i = 1;
  while (i + 1 < units.size() && size_bytes >> (10 * (i + 1)) != 0) ++i;
  const std::uint64_t unit = std::uint64_t{1} << (10 * i);
  if (i < 3 && size_bytes % unit == 0) return fmt::format("{} {}", size_bytes / unit, units[i]);
  // Cut, not rounded: 1023.999 MiB must not read as "1024.00 MiB" or as more than there is.
  const std::uint64_t whole = size_bytes / unit;
  const auto hundredths =
      static_cast<std::uint64_t>(static_cast<double>(size_bytes % unit) / double(unit) * 100);
  return fmt::format("{}.{:02} {}", whole, hundredths > 99 ? 99 : hundredths, units[i]);
}

std::string format_duration_ns(std::uint64_t duration_ns) {
  if (duration_ns < 1000) return fmt::format("{} ns", duration_ns);
  static constexpr std::array<const char*, 4> units = {"ns", "us", "ms", "s"};
  return scaled(static_cast<double>(duration_ns), units);
}

std::string format_rate(std::uint64_t size_bytes, std::uint64_t duration_ns) {
  if (duration_ns == 0) return "-";
  static constexpr std::array<const char*, 5> units = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  const double per_second = static_cast<double>(size_bytes) * 1e9 / double(duration_ns);
  return size_bytes == 0 ? "0 B/s" : scaled(per_second, units);
}

}  // namespace straightway::plan
