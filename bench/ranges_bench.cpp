// What a range of a many-range call costs: 64 bytes of a file in the page cache, so that hardly
// anything is copied. plan_ns: until the call is submitted; each_ns: until it is done. Both are
// linear in the number of ranges.

#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "straightway/straightway.hpp"

namespace straightway {
namespace {

constexpr std::uint64_t range_bytes = 64;

// As many ranges, and memory for them.
struct Work {
  explicit Work(std::size_t count) : memory(count * range_bytes) {
    const int fd = ::memfd_create("ranges", MFD_CLOEXEC);
    const std::vector<char> bytes(count * range_bytes, 's');
    const auto written = ::write(fd, bytes.data(), bytes.size());
    if (auto opened = File::from_descriptor(fd); opened && written > 0) file = std::move(*opened);
    ::close(fd);
  }
  Memory all() { return {memory.data(), memory.size()}; }

  std::vector<char> memory;
  File file;  // closed where it could not be made
};

double nanoseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::nano>(time).count();
}

template <class Submit>
void run(benchmark::State& state, Work& work, Submit&& submit) {
  double plan_ns = 0;
  double all_ns = 0;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    auto job = submit();
    const auto submitted = std::chrono::steady_clock::now();
    if (!job || job->result()->moved_bytes != work.memory.size()) {
      return state.SkipWithError("not all was read");
    }
    const auto done = std::chrono::steady_clock::now();
    plan_ns += nanoseconds(submitted - begin);
    all_ns += nanoseconds(done - begin);
  }
  const auto ranges = static_cast<double>(state.iterations() * state.range(0));
  state.counters["plan_ns"] = plan_ns / ranges;
  state.counters["each_ns"] = all_ns / ranges;
  state.SetComplexityN(state.range(0));
}

void memory_for_each(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  Work work(count);
  std::vector<RangeRequest> ranges;
  for (std::size_t i = 0; i < count; ++i) {
    ranges.push_back({(count - 1 - i) * range_bytes,
                      range_bytes,
                      {work.memory.data() + i * range_bytes, range_bytes}});
  }
  run(state, work, [&] { return work.file.submit_ranges(Direction::read, ranges); });
}
BENCHMARK(memory_for_each)
    ->RangeMultiplier(10)
    ->Range(1000, 100'000)
    ->Complexity(benchmark::oN)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

void one_memory(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  Work work(count);
  std::vector<PlacedRange> ranges;
  for (std::size_t i = 0; i < count; ++i) {
    ranges.push_back({(count - 1 - i) * range_bytes, range_bytes, i * range_bytes});
  }
  run(state, work, [&] { return work.file.submit_ranges(Direction::read, work.all(), ranges); });
}
BENCHMARK(one_memory)
    ->RangeMultiplier(10)
    ->Range(1000, 100'000)
    ->Complexity(benchmark::oN)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

}  // namespace
}  // namespace straightway
