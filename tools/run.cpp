// straightway run: a program on our libcufile.so.0, and what its receipts say at the end.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "arguments.hpp"
#include "commands.hpp"
#include "os/descriptor.hpp"
#include "receipt/run_summary.hpp"
#include "run_program.hpp"
#include "run_target.hpp"
#include "run_text.hpp"

namespace straightway::tools {
namespace {

// As env, nohup and timeout count: what the program itself answers must be told apart.
constexpr int failed_ourselves = 125;
constexpr int not_executable = 126;
constexpr int not_found = 127;

int failed_to_start(const Error& error, const RunOptions& options, Terminal& terminal) {
  terminal.fail(error, options.json);
  if (error.code == ENOENT) return not_found;
  return error.path.empty() ? failed_ourselves : not_executable;
}

// The words of the program: what stands behind our own options.
Result<std::vector<std::string>> program_words(std::vector<std::string> words) {
  if (!words.empty() && words.front() == end_of_options) {
    words.erase(words.begin());
  } else if (!words.empty() && words.front().starts_with("-")) {
    return usage_error("use " + words.front(), "straightway run has no such option",
                       "see straightway run --help; a program's own options follow its name");
  }
  if (!words.empty() && !words.front().empty()) return words;
  return usage_error("run a program", "none was named", "write straightway run PROGRAM [ARGS]");
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::write(fd, text.data(), text.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// Opened before the program runs, so that a wrong name does not cost its work.
Result<os::Descriptor> open_output(const std::string& path) {
  if (path.empty()) return os::Descriptor();
  os::Descriptor fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666));
  if (!fd) return system_error(errno, "write the summary to", path);
  return fd;
}

// The program's own answer stays the answer, whatever becomes of the summary.
void tell(const std::string& text, const os::Descriptor& output, const RunOptions& options,
          Terminal& terminal) {
  if (!output) return terminal.print_aside(text);
  if (!write_all(output.get(), text)) {
    terminal.warn(system_error(errno, "write the summary to", options.output).message());
  }
}

}  // namespace

int run_run(const RunOptions& options, Terminal& terminal) {
  const auto words = program_words(options.words);
  if (!words) return terminal.fail(words.error(), options.json);
  const auto libraries = find_run_libraries();
  if (!libraries) return failed_to_start(libraries.error(), options, terminal);
  const auto output = open_output(options.output);
  if (!output) {
    terminal.fail(output.error(), options.json);
    return failed_ourselves;
  }
  const auto memory = receipt::RunMemory::create();
  if (!memory) return failed_to_start(memory.error(), options, terminal);
  RunAccount account{*words, {}, 0, obstacle_of(find_program(words->front())), {}};
  if (!account.obstacle.empty()) {
    terminal.warn(words->front() + ": " + account.obstacle + "; it runs as it is");
  }
  const auto began = std::chrono::steady_clock::now();
  const auto end = run_program(*words, run_environment(*libraries, memory->place()));
  if (!end) return failed_to_start(end.error(), options, terminal);
  account.end = *end;
  account.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  auto summary = memory->read();
  if (summary) account.summary = std::move(*summary);
  if (!summary) terminal.warn(summary.error().message());
  tell(options.json ? dump(run_json(account)) + "\n" : run_text(account), *output, options,
       terminal);
  return account.end.exit_code;
}

}  // namespace straightway::tools
