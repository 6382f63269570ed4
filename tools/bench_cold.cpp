// Cold bytes, and files that are half hot: with the disk's ceilings in the same rounds.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "arguments.hpp"
#include "bench_run.hpp"
#include "interrupt.hpp"
#include "os/facts.hpp"
#include "os/system_text.hpp"
#include "plan/units.hpp"

namespace straightway::tools {
namespace {

constexpr std::uint64_t granule_bytes = 64 * mib;

Result<void> drop_all(const BenchRun& run) {
  return drop_cache(run.sample.descriptor(), run.sample.path(), 0, run.cold_bytes);
}

// Keeps noticing Ctrl-C: a cold read may take long.
Result<Receipt> read_cold(const BenchRun& run, const CallOptions& options) {
  const auto job = run.file.submit_read(run.memory(0, run.cold_bytes), options);
  if (!job) return job.error();
  return wait_for(*job, {});
}

Result<void> prepare_cold(const BenchRun& run) {
  if (auto poisoned = run.target->poison(); !poisoned) return poisoned;
  return drop_all(run);
}

std::vector<Way> raw_ways(const BenchRun& run) {
  std::vector<Way> ways;
  for (const RawWay& raw : raw_cold_ways) {
    Way way;
    way.name = raw.name;
    way.prepare = [&run] { return drop_all(run); };
    way.run = [&run, &raw] {
      return read_raw(raw, run.sample.path(), run.cold_bytes, run.area->data());
    };
    ways.push_back(std::move(way));
  }
  return ways;
}

std::vector<Way*> pointers(std::vector<Way>& ways) {
  std::vector<Way*> result;
  result.reserve(ways.size());
  for (Way& way : ways) result.push_back(&way);
  return result;
}

// How much of the file the read left in the page cache, 0 to 1.
Json cached_after(const BenchRun& run) {
  const auto left = os::read_residency(run.sample.descriptor(), 0, run.cold_bytes);
  if (!left.known) return nullptr;
  return static_cast<double>(left.resident_bytes) / static_cast<double>(run.cold_bytes);
}

Way cold_way(const BenchRun& run, BenchCase& result, Cache cache) {
  Way way;
  way.name = std::string("straightway, cache ") + to_string(cache);
  way.prepare = [&run] { return prepare_cold(run); };
  way.run = [&run, &result, cache]() -> Result<void> {
    CallOptions options;
    options.exact = true;
    options.cache = cache;
    const auto receipt = read_cold(run, options);
    if (!receipt) return receipt.error();
    result.pinned_bytes = receipt->pinned_bytes;
    if (receipt->disk_measured) result.more["disk_bytes"] = receipt->disk_bytes;
    return {};
  };
  way.finish = [&run, &result] {
    result.more["cached_after"] = cached_after(run);
    return run.verify(run.cold_bytes);
  };
  return way;
}

void keep_disk_ceilings(BenchRun& run, const std::vector<Way>& raw) {
  for (const Way& way : raw) {
    if (way.measured()) run.ceilings.disk[way.name] = median_gbs(way, run.cold_bytes);
  }
}

// What this behaviour of the cache is held against.
Ceiling cold_ceiling(const BenchRun& run, Cache cache) {
  if (cache == Cache::bypass) return run.disk_ceiling("O_DIRECT");
  if (cache == Cache::drop) {
    const Ceiling uncached = run.disk_ceiling("RWF_DONTCACHE");
    if (uncached.gbs > 0) return uncached;
  }
  return run.disk_ceiling();
}

// Why nothing here can be cold, or empty.
Result<std::string> why_never_cold(const BenchRun& run) {
  const auto dropped = drop_all(run);
  if (interrupted() != 0) return interrupted_error("measure");
  return dropped ? std::string() : dropped.error().message();
}

// Sectors read from the file's device so far, as bytes; nullopt where it has none.
std::optional<std::uint64_t> device_read_bytes(const BenchRun& run) {
  const std::string name(os::base_name(run.file.facts()->device));
  const std::string text = os::read_text("/proc/diskstats").value_or("");
  const auto at = name.empty() ? std::string::npos : text.find(" " + name + " ");
  if (at == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(text).substr(at + name.size() + 2);
  os::take_field(rest, ' ');  // reads
  os::take_field(rest, ' ');  // merged
  const auto sectors = os::to_number(rest);
  return sectors ? std::optional(*sectors * 512) : std::nullopt;
}

// 64 MiB, or less of a small file.
std::uint64_t granule_of(const BenchRun& run) {
  return std::min(granule_bytes, run.cold_bytes / 4 / mib * mib);
}

std::uint64_t hot_part_bytes(const BenchRun& run) {
  std::uint64_t hot = 0;
  const std::uint64_t granule = granule_of(run);
  for (std::uint64_t offset = 0; offset < run.cold_bytes; offset += 2 * granule) {
    hot += std::min(granule, run.cold_bytes - offset);
  }
  return hot;
}

// Every other granule hot, from the first on.
Result<void> prepare_mixed(const BenchRun& run) {
  if (auto cold = prepare_cold(run); !cold) return cold;
  const std::uint64_t granule = granule_of(run);
  for (std::uint64_t offset = 0; offset < run.cold_bytes; offset += 2 * granule) {
    auto warmed = warm_cache(run.sample.descriptor(), run.sample.path(), offset,
                             std::min(granule, run.cold_bytes - offset));
    if (!warmed) return warmed;
  }
  const auto found = os::read_residency(run.sample.descriptor(), 0, run.cold_bytes);
  const std::uint64_t wanted = hot_part_bytes(run);
  const std::uint64_t slack = run.cold_bytes / 50;
  if (found.resident_bytes + slack >= wanted && found.resident_bytes <= wanted + slack) return {};
  Error error =
      usage_error("make half of the file hot", fmt::format("{} of {} are in the page cache",
                                                           plan::format_bytes(found.resident_bytes),
                                                           plan::format_bytes(wanted)));
  error.kind = ErrorKind::io;
  return error;
}

// What the disk was made to read, by the receipt and by the device, beyond the cold half.
struct DiskReads {
  std::vector<double> receipt_bytes;
  std::vector<double> device_bytes;
};

Way mixed_way(const BenchRun& run, BenchCase& result, DiskReads& reads) {
  Way way;
  way.name = "straightway";
  way.prepare = [&run] { return prepare_mixed(run); };
  way.run = [&run, &result, &reads]() -> Result<void> {
    CallOptions options;
    options.exact = true;
    const auto before = device_read_bytes(run);
    const auto receipt = read_cold(run, options);
    const auto after = device_read_bytes(run);
    if (!receipt) return receipt.error();
    result.pinned_bytes = receipt->pinned_bytes;
    if (receipt->disk_measured) {
      reads.receipt_bytes.push_back(static_cast<double>(receipt->disk_bytes));
    }
    if (before && after) reads.device_bytes.push_back(static_cast<double>(*after - *before));
    return {};
  };
  way.finish = [&run] { return run.verify(run.cold_bytes); };
  return way;
}

// The larger of what both parts would take at their ceilings.
Ceiling mixed_ceiling(const BenchRun& run) {
  const auto hot = static_cast<double>(hot_part_bytes(run));
  const double cold = static_cast<double>(run.cold_bytes) - hot;
  const double disk = run.disk_ceiling().gbs;
  const double fast = run.hot_ceiling().gbs;
  if (disk <= 0 || fast <= 0) return {"the slower half", 0};
  const double hot_s = hot / fast / 1e9;
  const double cold_s = cold / disk / 1e9;
  return {hot_s > cold_s ? run.hot_ceiling().name : "disk",
          to_gbs(run.cold_bytes, std::max(hot_s, cold_s))};
}

}  // namespace

Result<void> measure_cold(BenchRun& run) {
  constexpr std::array<Cache, 4> caches = {Cache::automatic, Cache::keep, Cache::drop,
                                           Cache::bypass};
  const auto reason = why_never_cold(run);
  if (!reason) return reason.error();
  if (!reason->empty()) {
    run.cases.push_back(skip_case("cold", *reason));
    return {};
  }
  std::vector<Way> raw = raw_ways(run);
  std::vector<BenchCase> results;
  results.reserve(caches.size());
  for (const Cache cache : caches) {
    results.push_back(make_case(std::string("cold ") + to_string(cache), run.cold_bytes));
  }
  std::vector<Way> cold;
  cold.reserve(caches.size());
  for (std::size_t i = 0; i < caches.size(); ++i) {
    cold.push_back(cold_way(run, results[i], caches[i]));
  }
  std::vector<Way*> ways = pointers(raw);
  std::ranges::copy(pointers(cold), std::back_inserter(ways));
  if (auto done = alternate("cold", ways, run.rounds, run.terminal); !done) return done;
  keep_disk_ceilings(run, raw);
  for (std::size_t i = 0; i < caches.size(); ++i) {
    fill(results[i], cold[i], cold_ceiling(run, caches[i]));
    run.cases.push_back(std::move(results[i]));
  }
  return {};
}

Result<void> measure_mixed(BenchRun& run) {
  const auto reason = why_never_cold(run);
  if (!reason) return reason.error();
  if (!reason->empty() || granule_of(run) == 0) {
    run.cases.push_back(skip_case("mixed", reason->empty() ? "the file is too small" : *reason));
    return {};
  }
  BenchCase result = make_case("mixed", run.cold_bytes);
  DiskReads reads;
  Way way = mixed_way(run, result, reads);
  // The disk's own ways in the same rounds: other programs use it, too.
  std::vector<Way> raw = raw_ways(run);
  std::vector<Way*> ways = pointers(raw);
  ways.push_back(&way);
  if (auto done = alternate("mixed", ways, run.rounds, run.terminal); !done) return done;
  const auto of_cold = std::exchange(run.ceilings.disk, {});
  keep_disk_ceilings(run, raw);
  fill(result, way, mixed_ceiling(run));
  if (!of_cold.empty()) run.ceilings.disk = of_cold;
  result.more["granule_bytes"] = granule_of(run);
  result.more["hot_bytes"] = hot_part_bytes(run);
  if (!reads.receipt_bytes.empty()) result.more["disk_bytes"] = median(reads.receipt_bytes);
  if (!reads.device_bytes.empty()) result.more["device_read_bytes"] = median(reads.device_bytes);
  run.cases.push_back(std::move(result));
  return {};
}

}  // namespace straightway::tools
