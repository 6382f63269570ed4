// The hot case, and the ceilings of link and copiers.

#include <fmt/format.h>

#include <algorithm>

#include "arguments.hpp"
#include "bench_run.hpp"
#include "interrupt.hpp"
#include "os/facts.hpp"

namespace straightway::tools {
namespace {

constexpr std::uint64_t ring_bytes = 64 * mib;  // as the library's ring

// Large pinned copies, one after the other: nothing that a program can do moves bytes faster.
Way link_way(const BenchRun& run) {
  Way way;
  way.name = "pinned copies";
  way.run = [&run]() -> Result<void> {
    const std::uint64_t step = run.area->size_bytes();
    for (std::uint64_t offset = 0; offset < run.size_bytes; offset += step) {
      const auto size = std::min(step, run.size_bytes - offset);
      if (auto done = run.target->load(offset, run.area->data(), size); !done) return done;
    }
    return {};
  };
  return way;
}

// Plain pread() by all processors: into the target where that is host memory, else into a ring.
Way copiers_way(const BenchRun& run) {
  Way way;
  way.name = fmt::format("pread by {} threads", run.threads);
  const std::uint64_t window = std::min<std::uint64_t>(run.area->size_bytes(), ring_bytes) / mib;
  way.run = [&run, window] {
    return each_piece(run.size_bytes, mib, run.threads, [&](const Piece& piece) {
      char* to = run.on_device() ? run.area->data() + piece.offset / mib % window * mib
                                 : static_cast<char*>(run.memory(piece.offset, 0).address);
      return read_piece(run.sample.descriptor(), run.sample.path(), piece.offset, to,
                        piece.size_bytes);
    });
  };
  return way;
}

Way hot_way(const BenchRun& run, BenchCase& result) {
  Way way;
  way.name = "straightway";
  way.prepare = [&run] { return run.target->poison(); };
  way.run = [&run, &result]() -> Result<void> {
    const auto receipt = run.read_all();
    if (!receipt) return receipt.error();
    result.pinned_bytes = receipt->pinned_bytes;
    result.more["threads"] = receipt->threads;
    return {};
  };
  way.finish = [&run] { return run.verify(run.size_bytes); };
  return way;
}

Result<void> warm(const BenchRun& run) {
  const RawWay readers{"", run.threads, mib, false, false, 0};
  run.terminal.show_progress("hot  bringing the file into the page cache");
  return read_raw(readers, run.sample.path(), run.size_bytes, run.area->data());
}

void add_first_call(const BenchRun& run, BenchCase& result) {
  const FirstCall first = measure_first_call(run);
  if (first.failure) {
    result.failure = first.failure;
    return;
  }
  result.first_call_gbs = to_gbs(run.size_bytes, median(first.seconds));
  result.more["first_copy_ms"] = median(first.first_copy_s) * 1e3;
}

// How much of it the page cache holds, 0 to 1; large files may not fit.
double cached_part(const BenchRun& run) {
  const auto residency = os::read_residency(run.sample.descriptor(), 0, run.size_bytes);
  if (!residency.known) return 1;
  return static_cast<double>(residency.resident_bytes) / static_cast<double>(run.size_bytes);
}

}  // namespace

Result<void> measure_hot(BenchRun& run) {
  if (auto warmed = warm(run); !warmed) return warmed;
  BenchCase result = make_case("hot", run.size_bytes);
  Way link = link_way(run);
  Way copiers = copiers_way(run);
  Way hot = hot_way(run, result);
  std::vector<Way*> ways = {&copiers};
  if (run.on_device()) ways.push_back(&link);
  if (run.wants("hot")) ways.push_back(&hot);
  // What is paid once is in the first call, which is measured by itself.
  if (auto done = alternate("hot, warming up", ways, 1, run.terminal); !done) return done;
  for (Way* way : ways) way->seconds.clear(), way->cpu_s.clear();
  if (auto done = alternate("hot", ways, run.rounds, run.terminal); !done) return done;
  run.ceilings.copiers = median_gbs(copiers, run.size_bytes);
  if (run.on_device()) run.ceilings.link = median_gbs(link, run.size_bytes);
  if (!run.wants("hot")) return {};
  if (!hot.failure) add_first_call(run, result);
  if (interrupted() != 0) return interrupted_error("measure");
  const auto first_failure = result.failure;
  fill(result, hot, run.hot_ceiling());
  if (!result.failure) result.failure = first_failure;
  result.more["cached"] = cached_part(run);
  run.cases.push_back(std::move(result));
  return {};
}

}  // namespace straightway::tools
