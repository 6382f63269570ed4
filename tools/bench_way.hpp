#pragma once
// Ways of doing the same work, measured in turns, so that what moves with time (a shared disk, the
// clock of a processor) moves for all of them.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "straightway/result.hpp"
#include "terminal.hpp"

namespace straightway::tools {

// One way and what it took. The first failure ends this way, not the others.
struct Way {
  std::string name;
  std::function<Result<void>()> prepare;  // before each run, not timed; may be empty
  std::function<Result<void>()> run;
  std::function<Result<void>()> finish;  // after each run, not timed: looks whether it is right

  std::vector<double> seconds;  // one for each run that was right
  std::vector<double> cpu_s;    // of this process, all its threads
  std::optional<Error> failure;
  bool measured() const { return !failure && !seconds.empty(); }
};

// Each way once, then each again, `rounds` times. An error only when interrupted.
Result<void> alternate(const std::string& title, const std::vector<Way*>& ways, unsigned rounds,
                       Terminal& terminal);

// Of at least one value.
double median(std::vector<double> values);
double percentile(std::vector<double> values, double part);  // 0.99
// (largest - smallest) / median.
double spread(const std::vector<double>& values);

// CPU-seconds of this process so far.
double process_cpu_s();

}  // namespace straightway::tools
