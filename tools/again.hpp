#pragma once
// This program, run again as a child.

#include <string>
#include <vector>

#include "straightway/result.hpp"

namespace straightway::tools {

std::string own_path();
// Ours, as NAME=VALUE.
std::vector<std::string> own_environment();

struct ChildOutcome {
  int exit_code = 0;
  std::string output;  // only when captured
};
// Waits for its end; passes our interruption on. Its standard output is captured, or goes where
// ours does.
Result<ChildOutcome> run_again(const std::vector<std::string>& arguments,
                               std::vector<std::string> environment, bool capture);

}  // namespace straightway::tools
