// sim_tests [--seeds N] [--first S]: N seeds from S on, over drive::Transfer; before them the seeds
// of seeds.txt, which failed once. STRAIGHTWAY_SIM_SEEDS stands in for --seeds. Each seed runs
// twice: the same seed must do the same.

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/scenario.hpp"

namespace {

using straightway::sim::Outcome;
using straightway::sim::run_seed;

bool parse(std::string_view text, std::uint64_t& value) {
  const auto* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end;
}

// One number a line; text behind # says what it was.
std::vector<std::uint64_t> read_regressions(const char* path) {
  std::vector<std::uint64_t> seeds;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    line.erase(std::min(line.find('#'), line.size()));
    line.erase(line.find_last_not_of(" \t") + 1);
    std::uint64_t seed = 0;
    if (parse(line, seed)) seeds.push_back(seed);
  }
  return seeds;
}

bool passes(std::uint64_t seed, std::uint64_t& steps) {
  const Outcome outcome = run_seed(seed);
  std::string violation = outcome.violation;
  if (violation.empty() && run_seed(seed).trace != outcome.trace) {
    violation = "the same seed did something else the second time";
  }
  steps += outcome.steps;
  if (violation.empty()) return true;
  std::printf("seed %llu FAILED: %s\n  run it again: sim_tests --first %llu --seeds 1\n",
              static_cast<unsigned long long>(seed), violation.c_str(),
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t count = 2000;
  std::uint64_t first = 0;
  if (const char* text = std::getenv("STRAIGHTWAY_SIM_SEEDS")) {
    if (!parse(text, count)) return std::fprintf(stderr, "STRAIGHTWAY_SIM_SEEDS: a number\n"), 2;
  }
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    std::uint64_t* value = name == "--seeds" ? &count : name == "--first" ? &first : nullptr;
    if (value == nullptr || i + 1 >= argc || !parse(argv[i + 1], *value)) {
      std::fprintf(stderr, "usage: sim_tests [--seeds N] [--first S]\n");
      return 2;
    }
  }
  std::uint64_t failed = 0;
  std::uint64_t steps = 0;
  const auto regressions = read_regressions(SIM_SEEDS_FILE);
  for (const auto seed : regressions) failed += passes(seed, steps) ? 0 : 1;
  for (std::uint64_t i = 0; i < count && failed < 10; ++i)
    failed += passes(first + i, steps) ? 0 : 1;
  std::printf("%llu seeds and %zu regressions, %llu steps: %llu failed\n",
              static_cast<unsigned long long>(count), regressions.size(),
              static_cast<unsigned long long>(steps), static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}
