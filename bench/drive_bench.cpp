// What the driver costs over the null transport, which moves nothing: for each segment of one
// range, and for each of many ranges (it must grow with their number, no faster). The yardstick for
// a new transport: what a transfer over it costs more is the transport's own.

#include <benchmark/benchmark.h>

#include <array>
#include <memory>

#include "drive/transfer.hpp"
#include "transport/null.hpp"

namespace straightway::drive {
namespace {

Leg leg_of(const FileRange& range, std::uint64_t segment_bytes) {
  Leg leg;
  leg.range = range;
  leg.run_count = 1;
  leg.runs[0].route = Route::buffered;
  leg.runs[0].reason = Reason::host_memory;
  leg.runs[0].file = range;
  leg.runs[0].segment_bytes = segment_bytes;
  return leg;
}

// To its end; what the pump does, on this thread.
std::uint64_t drive(transport::Transport& transport, TransferSpec spec) {
  Routes routes;
  routes.buffered[index(Route::buffered)] = &transport;
  Transfer transfer(std::move(spec), routes, 1);
  std::array<transport::Completion, 64> done;
  for (std::uint64_t now_ns = 1; !transfer.drained(); ++now_ns) {
    transfer.step(now_ns);
    const auto count = transport.reap(done);
    for (std::size_t i = 0; i < count; ++i) transfer.complete(done[i], now_ns);
  }
  return transfer.moved_bytes();
}

void run(benchmark::State& state, const TransferSpec& spec, std::uint64_t wanted_bytes) {
  transport::Null null;
  for (auto _ : state) {
    if (drive(null, spec) != wanted_bytes) state.SkipWithError("not all was moved");
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetComplexityN(state.range(0));
}

void segments_of_one_range(benchmark::State& state) {
  constexpr std::uint64_t segment_bytes = std::uint64_t{1} << 20;
  const auto bytes = static_cast<std::uint64_t>(state.range(0)) * segment_bytes;
  TransferSpec spec;
  spec.files.push_back({{.fd = 3}, "weights.bin"});
  spec.legs.push_back(leg_of({0, bytes}, segment_bytes));
  run(state, spec, bytes);
}
BENCHMARK(segments_of_one_range)->Arg(1)->Arg(64)->Arg(1024)->Unit(benchmark::kMicrosecond);

void many_ranges(benchmark::State& state) {
  constexpr std::uint64_t range_bytes = std::uint64_t{16} << 10;
  const auto count = static_cast<std::uint64_t>(state.range(0));
  TransferSpec spec;
  spec.files.push_back({{.fd = 3}, "weights.bin"});
  for (std::uint64_t i = 0; i < count; ++i) {
    spec.legs.push_back(leg_of({2 * i * range_bytes, range_bytes}, range_bytes));
  }
  run(state, spec, count * range_bytes);
}
BENCHMARK(many_ranges)
    ->RangeMultiplier(10)
    ->Range(100, 100'000)
    ->Complexity(benchmark::oN)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace straightway::drive
