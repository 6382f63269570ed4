#pragma once
// The subcommands: what each was asked for, and what carries it out. Each returns the exit code:
// 0 success, 1 failure, 2 wrong usage, 128 + signal when interrupted.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "terminal.hpp"

namespace straightway::tools {

struct DemoOptions {
  std::string file;        // empty: one is made
  std::string size;        // empty: 256M, or the file's
  bool simulated = false;  // into the simulated GPU that this process was started with
  bool json = false;
};
int run_demo(const DemoOptions& options, Terminal& terminal);

struct ExplainOptions {
  std::string file;
  std::string to = "host";
  std::string offset = "0";
  std::string size;  // empty: to the end of the file
  std::string policy;
  std::string cache;
  std::string door = "straightway";
  bool write = false;
  bool registered = false;
  bool json = false;
};
int run_explain(const ExplainOptions& options, Terminal& terminal);

struct CopyOptions {
  std::string source;
  std::string target;
  std::string sync = "none";
  std::string policy;
  std::string cache;
  bool force = false;
  bool json = false;
};
int run_copy(const CopyOptions& options, Terminal& terminal);

struct CheckOptions {
  std::string file;     // empty: the machine alone
  std::string tree;     // a copy of another machine's /proc, /sys, /dev, /boot and /etc
  std::string require;  // "direct" or "staged": exit code 1 where that cannot be
  std::string format;   // "gdscheck": the machine as that tool reports it
  bool json = false;
};
int run_check(const CheckOptions& options, Terminal& terminal);

struct BenchOptions {
  std::string file;  // empty: one is made
  std::string to;    // empty: the first GPU, else host memory
  std::string cases = "hot,pinned,cold,mixed,small,ranges,write";
  std::string size;      // empty: at most 4 GiB
  std::string write_to;  // the folder of the written file; empty: beside FILE
  unsigned repeat = 5;
  bool json = false;
  bool first_call = false;  // this process measures its own first read, for another one
};
int run_bench(const BenchOptions& options, Terminal& terminal);

struct StatsOptions {
  std::int64_t pid = 0;  // 0: all processes
  std::string watch;     // seconds; empty: once
  std::string format;    // "gds_stats": as that tool prints what our libcufile.so.0 counted
  std::string level;     // of that format, 1 to 3; empty: as much as is counted
  bool json = false;
};
int run_stats(const StatsOptions& options, Terminal& terminal);

// What stands for "--" before PROGRAM, which the parser of our own options would swallow.
inline constexpr const char* end_of_options = "\001";

struct RunOptions {
  std::vector<std::string> words;  // the program and its arguments; end_of_options may be first
  std::string output;              // the file that takes the summary; empty: standard error
  bool json = false;
};
// The exit code is the program's; 125 to 127 where it could not be started.
int run_run(const RunOptions& options, Terminal& terminal);

}  // namespace straightway::tools
