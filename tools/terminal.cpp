#include "terminal.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "json.hpp"
#include "plan/units.hpp"

namespace straightway::tools {
namespace {

bool wants_colours() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return (no_color == nullptr || *no_color == '\0') &&
         (term == nullptr || std::string_view(term) != "dumb");
}

const char* escape(Paint paint) {
  switch (paint) {
    case Paint::bold:
      return "\033[1m";
    case Paint::good:
      return "\033[32m";
    case Paint::bad:
      return "\033[31m";
    case Paint::doubtful:
      return "\033[33m";
    case Paint::faint:
      return "\033[2m";
    case Paint::plain:
      break;
  }
  return "";
}

// A closed standard error is no reason to fail: there is nobody to tell.
void write_error(const std::string& text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
  static_cast<void>(std::fflush(stderr));
}

}  // namespace

Terminal::Terminal()
    : out_is_terminal_(::isatty(STDOUT_FILENO) == 1),
      error_is_terminal_(::isatty(STDERR_FILENO) == 1),
      colours_(out_is_terminal_ && wants_colours()) {}

std::string Terminal::paint(Paint paint, std::string_view text) const {
  if (!colours_ || paint == Paint::plain) return std::string(text);
  return fmt::format("{}{}\033[0m", escape(paint), text);
}

void Terminal::print(std::string_view text) {
  clear_progress();
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) broken_ = true;
  if (std::fflush(stdout) != 0) broken_ = true;
}

void Terminal::print_line(std::string_view text) { print(std::string(text) + "\n"); }

void Terminal::print_aside(std::string_view text) {
  clear_progress();
  write_error(std::string(text));
}

void Terminal::warn(std::string_view text) {
  clear_progress();
  write_error(fmt::format("straightway: {}\n", text));
}

int Terminal::fail(const Error& error, bool json) {
  warn(error.message());
  if (json) print_line(dump(Json{{"error", to_json(error)}}));
  const bool usage = error.kind == ErrorKind::invalid_argument &&
                     error.origin == ErrorOrigin::straightway && error.path.empty();
  return usage ? 2 : 1;
}

void Terminal::show_progress(const std::string& line) {
  if (!error_is_terminal_) return;
  write_error("\r\033[K" + line);
  progress_shown_ = true;
}

void Terminal::clear_progress() {
  if (!progress_shown_) return;
  write_error("\r\033[K");
  progress_shown_ = false;
}

bool Terminal::finish() {
  clear_progress();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) broken_ = true;
  return !broken_;
}

ProgressLine::ProgressLine(Terminal& terminal, std::string verb, std::uint64_t wanted_bytes)
    : terminal_(terminal), verb_(std::move(verb)), wanted_bytes_(wanted_bytes) {}

ProgressLine::~ProgressLine() { terminal_.clear_progress(); }

void ProgressLine::show(std::uint64_t moved_bytes) {
  const auto now = Clock::now();
  if (!terminal_.shows_progress() || now - shown_ < std::chrono::milliseconds(100)) return;
  shown_ = now;
  const auto passed_ns = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now - started_).count());
  const double part =
      wanted_bytes_ == 0
          ? 1.0
          : std::min(1.0, static_cast<double>(moved_bytes) / static_cast<double>(wanted_bytes_));
  std::string left;
  if (part > 0.02 && part < 1) {
    left =
        fmt::format("   {:.0f} s left", static_cast<double>(passed_ns) / 1e9 * (1 - part) / part);
  }
  terminal_.show_progress(fmt::format("{}  {} of {}  {:3.0f}%   {}{}", verb_,
                                      plan::format_bytes(moved_bytes),
                                      plan::format_bytes(wanted_bytes_), part * 100,
                                      plan::format_rate(moved_bytes, passed_ns), left));
}

}  // namespace straightway::tools
