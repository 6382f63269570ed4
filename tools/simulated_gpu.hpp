#pragma once
// The simulated GPU: a driver library of the tests, loaded by a child process in place of the real
// one.

#include <optional>
#include <string>
#include <vector>

#include "again.hpp"
#include "straightway/result.hpp"

namespace straightway::tools {

// The folder with the simulated libcuda.so.1: where STRAIGHTWAY_SIMULATED_GPU says (the file or its
// folder; an error where there is none), else beside the build that this program lies in; nullopt
// where it was installed without.
Result<std::optional<std::string>> find_simulated_gpu();

// Runs this program again, with that driver. Its standard output is captured, or goes where ours
// does.
Result<ChildOutcome> run_with_simulated_gpu(const std::string& folder,
                                            const std::vector<std::string>& arguments,
                                            bool capture);

}  // namespace straightway::tools
