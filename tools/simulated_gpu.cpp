#include "simulated_gpu.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "arguments.hpp"

namespace straightway::tools {
namespace {

constexpr const char* library_name = "libcuda.so.1";

bool has_library(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(folder / library_name, ignored);
}

// Our environment, with the folder first in the loader's search path.
std::vector<std::string> child_environment(const std::string& folder) {
  constexpr std::string_view key = "LD_LIBRARY_PATH=";
  std::string search = std::string(key) + folder;
  std::vector<std::string> environment;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view entry = *at;
    if (!entry.starts_with(key)) {
      environment.emplace_back(entry);
    } else if (entry.size() > key.size()) {
      search += ":" + std::string(entry.substr(key.size()));
    }
  }
  environment.push_back(search);
  return environment;
}

}  // namespace

Result<std::optional<std::string>> find_simulated_gpu() {
  if (const char* asked = ::secure_getenv("STRAIGHTWAY_SIMULATED_GPU")) {
    std::filesystem::path folder = asked;
    if (folder.filename() == library_name) folder = folder.parent_path();
    if (!has_library(folder)) {
      return usage_error("use STRAIGHTWAY_SIMULATED_GPU=" + std::string(asked),
                         "there is no libcuda.so.1", "name that file, or the folder it lies in");
    }
    return std::optional(std::filesystem::absolute(folder).string());
  }
  const auto build = std::filesystem::path(own_path()).parent_path().parent_path();
  const auto beside = build / "tests" / "fakes" / "cuda";
  if (has_library(beside)) return std::optional(beside.string());
  return std::optional<std::string>();
}

Result<ChildOutcome> run_with_simulated_gpu(const std::string& folder,
                                            const std::vector<std::string>& arguments,
                                            bool capture) {
  return run_again(arguments, child_environment(folder), capture);
}

}  // namespace straightway::tools
