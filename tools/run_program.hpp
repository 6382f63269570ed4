#pragma once
// Starts a program and stands beside it until it ends, as if the program had been started in our
// place.

#include <string>
#include <vector>

#include "straightway/result.hpp"

namespace straightway::tools {

struct ProgramEnd {
  int exit_code = 0;  // 128 + signal where one ended it
  int signal = 0;
};

// Signals that are sent to us alone are passed on; those of the terminal reach the program by
// themselves. An error where it could not be started: code is then the errno of exec.
Result<ProgramEnd> run_program(const std::vector<std::string>& words,
                               const std::vector<std::string>& environment);

}  // namespace straightway::tools
