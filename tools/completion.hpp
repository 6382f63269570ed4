#pragma once
// Completion for shells, made from the command line's own description, so that it is never behind.

#include <CLI/CLI.hpp>
#include <string>

namespace straightway::tools {

// shell: "bash", "zsh" or "fish".
std::string completion(const CLI::App& app, const std::string& shell);

}  // namespace straightway::tools
