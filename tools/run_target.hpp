#pragma once
// What `straightway run` starts, looked at before: where the program lies, and whether a library
// can be put behind it.

#include <string>
#include <vector>

#include "straightway/result.hpp"

namespace straightway::tools {

// Our libcufile.so.0 and the audit library that sends searches to it, beside this command line: in
// its build tree, in the tree it was installed to, in its wheel.
struct RunLibraries {
  std::string cufile;
  std::string audit;
};
Result<RunLibraries> find_run_libraries();

// The file that exec would take for this word; empty where there is none.
std::string find_program(const std::string& word);

// Why nothing can be put behind this program ("it is statically linked"); empty where it can.
std::string obstacle_of(const std::string& path);

// Our environment, with the audit library first in LD_AUDIT and `place` in STRAIGHTWAY_RUN.
std::vector<std::string> run_environment(const RunLibraries& libraries, const std::string& place);

}  // namespace straightway::tools
