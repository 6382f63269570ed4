// Small reads one by one, and very many in one call, from a hot file.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <random>

#include "bench_run.hpp"
#include "plan/units.hpp"

namespace straightway::tools {
namespace {

constexpr std::uint64_t block_bytes = 4096;
constexpr std::size_t range_bytes = 16 << 10;
constexpr std::uint64_t most_ranges = 100000;

using Clock = std::chrono::steady_clock;

// Where in the file each request begins; its bytes go to the slot of the same number.
class Slots {
 public:
  Slots(std::vector<std::uint64_t> offsets, std::size_t size)
      : offsets_(std::move(offsets)), size_(size) {}
  std::size_t count() const { return offsets_.size(); }
  std::uint64_t offset(std::size_t slot) const { return offsets_[slot]; }
  std::uint64_t total_bytes() const { return offsets_.size() * size_; }

  // Compares every slot with plain pread().
  Result<void> verify(const BenchRun& run) const {
    std::vector<char> expected(run.threads * size_);
    const auto check = [&](const Piece& piece) -> Result<void> {
      char* wanted = expected.data() + piece.thread * size_;
      char* found = run.area->data() + piece.thread * size_;
      const std::uint64_t from = offsets_[piece.offset / size_];
      auto read = read_piece(run.sample.descriptor(), run.sample.path(), from, wanted, size_);
      if (!read) return read;
      if (auto fetched = run.target->fetch(piece.offset, found, size_); !fetched) return fetched;
      if (std::memcmp(wanted, found, size_) == 0) return {};
      return wrong_bytes(run.sample.path(), from);
    };
    return each_piece(total_bytes(), size_, run.threads, check);
  }

 private:
  std::vector<std::uint64_t> offsets_;
  std::size_t size_;
};

// Random offsets, on blocks.
Slots random_slots(const BenchRun& run, std::size_t size, std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::uint64_t> block(0, (run.size_bytes - size) / block_bytes);
  std::vector<std::uint64_t> offsets(count);
  for (std::uint64_t& offset : offsets) offset = block(random) * block_bytes;
  return {std::move(offsets), size};
}

using Request = std::function<Result<void>(std::uint64_t offset, std::uint64_t slot_offset)>;

// Each request of the slots in turn, and how long each took.
Result<void> time_requests(const Slots& slots, std::size_t size, const Request& request,
                           std::vector<double>& latencies_us) {
  for (std::size_t slot = 0; slot < slots.count(); ++slot) {
    const auto before = Clock::now();
    if (auto done = request(slots.offset(slot), slot * size); !done) return done;
    latencies_us.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - before).count());
  }
  return {};
}

// What a program without a library does: pread(), and for a GPU a copy from pinned memory.
Request raw_request(const BenchRun& run, std::size_t size) {
  return [&run, size](std::uint64_t offset, std::uint64_t slot_offset) -> Result<void> {
    char* to = run.on_device() ? run.area->data()
                               : static_cast<char*>(run.memory(slot_offset, size).address);
    auto read = read_piece(run.sample.descriptor(), run.sample.path(), offset, to, size);
    if (!read || !run.on_device()) return read;
    return run.target->load(slot_offset, to, size);
  };
}

Request own_request(const BenchRun& run, std::size_t size, BenchCase& result) {
  return [&run, size, &result](std::uint64_t offset, std::uint64_t slot_offset) -> Result<void> {
    CallOptions options;
    options.offset = offset;
    options.exact = true;
    const auto receipt = run.file.read_into(run.memory(slot_offset, size), options);
    if (!receipt) return receipt.error();
    result.pinned_bytes = receipt->pinned_bytes;
    return {};
  };
}

struct Latencies {
  std::vector<double> all_us;
  std::vector<double> round_p50_us;
};

Way small_way(const BenchRun& run, std::string name, const Slots& slots, std::size_t size,
              Request request, Latencies& latencies) {
  Way way;
  way.name = std::move(name);
  way.prepare = [&run] { return run.target->poison(); };
  way.run = [&slots, size, request = std::move(request), &latencies]() -> Result<void> {
    std::vector<double> round_us;
    auto done = time_requests(slots, size, request, round_us);
    if (!done) return done;
    latencies.round_p50_us.push_back(percentile(round_us, 0.5));
    latencies.all_us.insert(latencies.all_us.end(), round_us.begin(), round_us.end());
    return {};
  };
  way.finish = [&run, &slots] { return slots.verify(run); };
  return way;
}

void fill_small(BenchCase& result, const Way& own, const Latencies& ours, const Way& raw,
                const Latencies& theirs, std::uint64_t run_bytes) {
  result.failure = own.failure;
  if (!own.measured()) return;
  result.verified = true;
  const double p50_us = median(ours.round_p50_us);
  result.p50_us = p50_us;
  result.p99_us = percentile(ours.all_us, 0.99);
  result.median_gbs = to_gbs(result.bytes, p50_us / 1e6);
  result.spread = spread(ours.round_p50_us);
  result.cpu_s_per_gb = median(own.cpu_s) / (static_cast<double>(run_bytes) / 1e9);
  result.first_call_gbs = to_gbs(result.bytes, ours.all_us.front() / 1e6);
  result.more["requests"] = ours.all_us.size();
  if (!raw.measured()) return;
  const double raw_us = median(theirs.round_p50_us);
  result.ceiling = {raw.name, to_gbs(result.bytes, raw_us / 1e6)};
  result.more["raw_p50_us"] = raw_us;
  result.more["raw_p99_us"] = percentile(theirs.all_us, 0.99);
}

Result<void> measure_size(BenchRun& run, std::size_t size, std::size_t count) {
  const std::string name = "small " + plan::format_bytes(size);
  if (run.size_bytes < size) {
    run.cases.push_back(skip_case(name, "the file is smaller"));
    return {};
  }
  count = std::min<std::size_t>(count, run.size_bytes / size);
  BenchCase result = make_case(name, size);
  const Slots slots = random_slots(run, size, count, 1);
  const Slots raw_slots = random_slots(run, size, count, 2);
  Latencies ours;
  Latencies theirs;
  Way own = small_way(run, "straightway", slots, size, own_request(run, size, result), ours);
  Way raw = small_way(run, run.on_device() ? "pread and copy" : "pread", raw_slots, size,
                      raw_request(run, size), theirs);
  if (auto done = alternate(name, {&raw, &own}, run.rounds, run.terminal); !done) return done;
  fill_small(result, own, ours, raw, theirs, slots.total_bytes());
  run.cases.push_back(std::move(result));
  return {};
}

// Ranges of the whole file in random order, none of them twice.
Slots shuffled_ranges(const BenchRun& run) {
  std::vector<std::uint64_t> offsets(run.size_bytes / range_bytes);
  std::iota(offsets.begin(), offsets.end(), 0);
  std::ranges::shuffle(offsets, std::mt19937_64(3));
  offsets.resize(std::min<std::uint64_t>(offsets.size(), most_ranges));
  for (std::uint64_t& offset : offsets) offset *= range_bytes;
  return {std::move(offsets), range_bytes};
}

}  // namespace

Result<void> measure_small(BenchRun& run) {
  if (auto done = measure_size(run, 4096, 1000); !done) return done;
  if (auto done = measure_size(run, 64 << 10, 1000); !done) return done;
  return measure_size(run, mib, 300);
}

Result<void> measure_ranges(BenchRun& run) {
  const Slots slots = shuffled_ranges(run);
  if (slots.count() == 0) {
    run.cases.push_back(skip_case("ranges", "the file is too small"));
    return {};
  }
  std::vector<PlacedRange> ranges;
  ranges.reserve(slots.count());
  for (std::size_t slot = 0; slot < slots.count(); ++slot) {
    ranges.push_back({slots.offset(slot), range_bytes, slot * range_bytes});
  }
  BenchCase result = make_case("ranges", slots.total_bytes());
  Way way;
  way.name = "straightway";
  way.prepare = [&run] { return run.target->poison(); };
  way.run = [&]() -> Result<void> {
    const auto receipt = run.file.read_ranges(run.memory(0, slots.total_bytes()), ranges);
    if (!receipt) return receipt.error();
    result.pinned_bytes = receipt->pinned_bytes;
    return {};
  };
  way.finish = [&] { return slots.verify(run); };
  if (auto done = alternate("ranges", {&way}, run.rounds, run.terminal); !done) return done;
  fill(result, way, run.hot_ceiling());
  result.more["ranges"] = slots.count();
  result.more["range_bytes"] = range_bytes;
  run.cases.push_back(std::move(result));
  return {};
}

}  // namespace straightway::tools
