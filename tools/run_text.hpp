#pragma once
// What `straightway run` says at the end: for people, and as JSON.

#include <string>
#include <vector>

#include "json.hpp"
#include "receipt/run_summary.hpp"
#include "run_program.hpp"

namespace straightway::tools {

struct RunAccount {
  std::vector<std::string> words;  // the program and its arguments
  ProgramEnd end;
  double seconds = 0;
  std::string obstacle;  // why no library could be put behind it; empty: none is known
  receipt::RunSummary summary;
};

std::string run_text(const RunAccount& account);
Json run_json(const RunAccount& account);

// What would be faster, and how; one sentence each. Empty where nothing is known to be.
std::vector<std::string> run_advice(const RunAccount& account);

}  // namespace straightway::tools
