#pragma once
// What the command line shows: results on standard output, all else on standard error. Colours and
// progress only where a person looks at a terminal.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "straightway/result.hpp"

namespace straightway::tools {

enum class Paint : std::uint8_t { plain, bold, good, bad, doubtful, faint };

class Terminal {
 public:
  // Looks at the descriptors, NO_COLOR and TERM.
  Terminal();

  bool is_terminal() const { return out_is_terminal_; }
  bool shows_progress() const { return error_is_terminal_; }
  // The text in colour where standard output shows colours.
  std::string paint(Paint paint, std::string_view text) const;

  void print(std::string_view text);  // to standard output, as it is
  void print_line(std::string_view text);
  void print_aside(std::string_view text);  // to standard error, as it is
  void warn(std::string_view text);         // "straightway: ..." to standard error
  // On standard error; with json also as an object on standard output. Returns the exit code: 2
  // where the command line itself is wrong, else 1.
  int fail(const Error& error, bool json);

  // Redraws the one progress line, or takes it away.
  void show_progress(const std::string& line);
  void clear_progress();

  // Whether all that was printed has arrived; false too where the reader went away.
  bool finish();
  bool broken() const { return broken_; }

 private:
  bool out_is_terminal_;
  bool error_is_terminal_;
  bool colours_;
  bool progress_shown_ = false;
  bool broken_ = false;
};

// "  1.20 GiB of 4.00 GiB   30%  2.1 GB/s   1 s left", at most ten times a second.
class ProgressLine {
 public:
  ProgressLine(Terminal& terminal, std::string verb, std::uint64_t wanted_bytes);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(std::uint64_t moved_bytes);

 private:
  using Clock = std::chrono::steady_clock;
  Terminal& terminal_;
  std::string verb_;
  std::uint64_t wanted_bytes_;
  Clock::time_point started_ = Clock::now();
  Clock::time_point shown_{};
};

}  // namespace straightway::tools
