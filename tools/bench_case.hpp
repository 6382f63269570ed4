#pragma once
// What one case of the bench came to.

#include <cstdint>
#include <optional>
#include <string>

#include "bench_way.hpp"
#include "json.hpp"

namespace straightway::tools {

// What a case is held against.
struct Ceiling {
  std::string name;  // "link", "disk"
  double gbs = 0;    // 0: not measured
};

struct BenchCase {
  std::string name;         // "cold keep"
  std::uint64_t bytes = 0;  // of one run
  // Rates and times are there only when every byte of every run was verified.
  bool verified = false;
  double median_gbs = 0;
  double spread = 0;
  double cpu_s_per_gb = 0;
  Ceiling ceiling;
  std::optional<double> first_call_gbs;
  std::uint64_t pinned_bytes = 0;
  std::optional<double> p50_us;  // small requests
  std::optional<double> p99_us;
  std::string skipped;           // why it was not measured
  std::optional<Error> failure;  // what went wrong, so that nothing may be said
  Json more = Json::object();    // what only this case has

  bool measured() const { return verified && skipped.empty() && !failure; }
  // 0 where there is no ceiling.
  double share() const { return ceiling.gbs > 0 ? median_gbs / ceiling.gbs : 0; }
};

BenchCase make_case(std::string name, std::uint64_t bytes);
BenchCase skip_case(std::string name, std::string why);
// Takes over what the way took. The case is verified if all its runs were right.
void fill(BenchCase& result, const Way& way, Ceiling ceiling);

double to_gbs(std::uint64_t bytes, double seconds);
// The rate of the median run; 0 where there was none.
double median_gbs(const Way& way, std::uint64_t bytes);

// Numbers of what was not verified are null.
Json to_json(const BenchCase& result);

}  // namespace straightway::tools
