#pragma once
// What `check` found, line by line: a fact, whether it helps or is missing, and where it was read.

#include <string>
#include <vector>

#include "json.hpp"
#include "terminal.hpp"

namespace straightway::tools {

enum class Verdict : std::uint8_t { pass, lacking, unknown };
const char* to_string(Verdict verdict);

struct Finding {
  Verdict verdict = Verdict::pass;
  std::string subject;   // "io_uring"
  std::string fact;      // "answers", "ENOSYS: ..."
  std::string source;    // "io_uring_setup"
  std::string fix = {};  // what to do where it is lacking
};

struct Section {
  std::string title;
  std::vector<Finding> findings;
};

void print(const Section& section, Terminal& terminal);
Json to_json(const Section& section);

}  // namespace straightway::tools
