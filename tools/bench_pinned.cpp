// A file that is pinned and read again, and one that is pinned to be read once.

#include <chrono>

#include "bench_run.hpp"

namespace straightway::tools {
namespace {

using Clock = std::chrono::steady_clock;

// Reads of a file whose pages are registered.
Way pinned_way(const BenchRun& run, BenchCase& result) {
  Way way;
  way.name = "straightway, pinned";
  way.prepare = [&run] { return run.target->poison(); };
  way.run = [&run, &result]() -> Result<void> {
    const auto receipt = run.read_all();
    if (!receipt) return receipt.error();
    result.pinned_bytes = receipt->pinned_bytes;
    result.more["pinned_cache_bytes"] = receipt->routes[index(Route::pinned_cache)].bytes;
    return {};
  };
  way.finish = [&run] { return run.verify(run.size_bytes); };
  return way;
}

// Registration and one read. What letting go takes is kept beside it.
Way pin_and_read_way(const BenchRun& run, Pin& pin, std::vector<double>& release_s) {
  Way way;
  way.name = "straightway, pin and read once";
  way.prepare = [&run] { return run.target->poison(); };
  way.run = [&run, &pin]() -> Result<void> {
    auto made = run.file.pin();
    if (!made) return made.error();
    pin = std::move(*made);
    const auto receipt = run.read_all();
    if (!receipt) return receipt.error();
    return {};
  };
  way.finish = [&run, &pin, &release_s] {
    const auto before = Clock::now();
    pin.release();
    release_s.push_back(std::chrono::duration<double>(Clock::now() - before).count());
    return run.verify(run.size_bytes);
  };
  return way;
}

}  // namespace

Result<void> measure_pinned(BenchRun& run) {
  if (!run.on_device()) {
    run.cases.push_back(skip_case("pinned", "it is for the memory of a GPU"));
    return {};
  }
  BenchCase again = make_case("pinned", run.size_bytes);
  BenchCase once = make_case("pin and read", run.size_bytes);
  const auto before = Clock::now();
  auto pin = run.file.pin();
  if (!pin) {
    run.cases.push_back(skip_case("pinned", pin.error().message()));
    return {};
  }
  const std::chrono::duration<double> took = Clock::now() - before;
  again.more["pin_gbs"] = to_gbs(run.size_bytes, took.count());
  Way reads = pinned_way(run, again);
  if (auto done = alternate("pinned", {&reads}, run.rounds, run.terminal); !done) return done;
  fill(again, reads, run.hot_ceiling());
  pin->release();
  Pin held;
  std::vector<double> release_s;
  Way both = pin_and_read_way(run, held, release_s);
  if (auto done = alternate("pin and read", {&both}, run.rounds, run.terminal); !done) return done;
  fill(once, both, run.hot_ceiling());
  if (!release_s.empty()) once.more["release_ms"] = median(release_s) * 1e3;
  run.cases.push_back(std::move(again));
  run.cases.push_back(std::move(once));
  return {};
}

}  // namespace straightway::tools
