// What one call costs: 4 KiB of a file in the page cache, through File::read_into and by plain
// pread, in turns within one run, so that a noisy machine treats both alike. Budget: 1.5 us more.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "straightway/straightway.hpp"

namespace straightway {
namespace {

constexpr std::size_t call_bytes = 4096;
constexpr std::size_t file_bytes = 1 << 20;

// A file that goes when the benchmark ends.
class HotFile {
 public:
  HotFile() {
    fd_ = ::mkstemp(path_.data());
    const std::vector<char> bytes(file_bytes, 's');
    if (fd_ < 0 || ::write(fd_, bytes.data(), bytes.size()) != ssize_t{file_bytes}) std::abort();
  }
  ~HotFile() {
    ::close(fd_);
    ::unlink(path_.c_str());
  }
  HotFile(const HotFile&) = delete;
  HotFile& operator=(const HotFile&) = delete;
  int descriptor() const { return fd_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/straightway-bench-XXXXXX";
  int fd_ = -1;
};

std::uint64_t offset_of(std::uint64_t n) { return n * call_bytes % file_bytes; }

void plain_pread(benchmark::State& state) {
  const HotFile hot;
  std::vector<char> buffer(call_bytes);
  std::uint64_t n = 0;
  for (auto _ : state) {
    const auto offset = static_cast<off_t>(offset_of(n++));
    benchmark::DoNotOptimize(::pread(hot.descriptor(), buffer.data(), call_bytes, offset));
  }
}
BENCHMARK(plain_pread);

void file_read_into(benchmark::State& state) {
  const HotFile hot;
  auto file = File::open(hot.path());
  if (!file) return state.SkipWithError(file.error().why.c_str());
  std::vector<char> buffer(call_bytes);
  CallOptions options;
  std::uint64_t n = 0;
  for (auto _ : state) {
    options.offset = offset_of(n++);
    const auto receipt = file->read_into({buffer.data(), call_bytes}, options);
    if (!receipt) return state.SkipWithError(receipt.error().why.c_str());
  }
}
BENCHMARK(file_read_into);

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <class Call>
double batch_ns(Call&& call) {
  constexpr int calls = 64;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call();
  const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - begin;
  return passed.count() / calls;
}

// The figure to compare with the budget: the medians of alternating batches.
void read_into_against_pread(benchmark::State& state) {
  const HotFile hot;
  auto file = File::open(hot.path());
  if (!file) return state.SkipWithError(file.error().why.c_str());
  std::vector<char> buffer(call_bytes);
  std::vector<double> plain;
  std::vector<double> ours;
  CallOptions options;
  std::uint64_t n = 0;
  for (auto _ : state) {
    plain.push_back(batch_ns([&] {
      const auto offset = static_cast<off_t>(offset_of(n++));
      benchmark::DoNotOptimize(::pread(hot.descriptor(), buffer.data(), call_bytes, offset));
    }));
    ours.push_back(batch_ns([&] {
      options.offset = offset_of(n++);
      benchmark::DoNotOptimize(file->read_into({buffer.data(), call_bytes}, options));
    }));
  }
  state.counters["pread_ns"] = median(plain);
  state.counters["read_into_ns"] = median(ours);
  state.counters["difference_ns"] = median(ours) - median(plain);
  state.counters["ratio"] = median(ours) / median(plain);
}
BENCHMARK(read_into_against_pread)->MinTime(2);

}  // namespace
}  // namespace straightway
