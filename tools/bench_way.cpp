#include "bench_way.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "arguments.hpp"
#include "interrupt.hpp"

namespace straightway::tools {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

Result<void> run_once(Way& way) {
  using Clock = std::chrono::steady_clock;
  if (way.prepare) {
    if (auto done = way.prepare(); !done) return done;
  }
  const double cpu_before = process_cpu_s();
  const auto before = Clock::now();
  if (auto done = way.run(); !done) return done;
  const std::chrono::duration<double> took = Clock::now() - before;
  const double cpu_after = process_cpu_s();
  if (way.finish) {
    if (auto done = way.finish(); !done) return done;
  }
  way.seconds.push_back(took.count());
  way.cpu_s.push_back(cpu_after - cpu_before);
  return {};
}

}  // namespace

Result<void> alternate(const std::string& title, const std::vector<Way*>& ways, unsigned rounds,
                       Terminal& terminal) {
  for (unsigned round = 0; round < rounds; ++round) {
    for (Way* way : ways) {
      if (interrupted() != 0) return interrupted_error("measure");
      if (way->failure) continue;
      terminal.show_progress(
          fmt::format("{}  round {} of {}: {}", title, round + 1, rounds, way->name));
      auto done = run_once(*way);
      if (interrupted() != 0) return interrupted_error("measure");
      if (!done) way->failure = done.error();
    }
  }
  terminal.clear_progress();
  return {};
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double percentile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  const double at = std::ceil(part * static_cast<double>(values.size()));
  return values[std::min(values.size(), static_cast<std::size_t>(std::max(at, 1.0))) - 1];
}

double spread(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return (most - least) / median(values);
}

double process_cpu_s() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

}  // namespace straightway::tools
