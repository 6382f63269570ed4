#include "again.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "arguments.hpp"
#include "interrupt.hpp"

namespace straightway::tools {
namespace {

constexpr std::size_t output_limit_bytes = 16 << 20;

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Reads to the end of the pipe. The child's size is bounded: it is our own program, but a pipe that
// never ends must not eat the memory.
std::string drain(int fd) {
  std::string text;
  std::array<char, 65536> piece;
  while (text.size() < output_limit_bytes) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return text;
}

// A terminal sends Ctrl-C to the child too; other senders know us alone, so it is passed on if the
// child has not ended soon after.
int wait_for_child(pid_t child) {
  int status = 0;
  int polls_since_signal = 0;
  while (true) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) return 1;
    if (interrupted() != 0 && ++polls_since_signal == 50) ::kill(child, interrupted());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::string own_path() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
}

std::vector<std::string> own_environment() {
  std::vector<std::string> environment;
  for (char** at = environ; *at != nullptr; ++at) environment.emplace_back(*at);
  return environment;
}

Result<ChildOutcome> run_again(const std::vector<std::string>& arguments,
                               std::vector<std::string> environment, bool capture) {
  std::vector<std::string> words = {own_path()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  int ends[2] = {-1, -1};
  if (capture && ::pipe2(ends, O_CLOEXEC) != 0) return system_error(errno, "make a pipe", "");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (capture) ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int code = ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr,
                                 pointers(words).data(), pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (capture) ::close(ends[1]);
  ChildOutcome outcome;
  if (code == 0 && capture) outcome.output = drain(ends[0]);
  if (capture) ::close(ends[0]);
  if (code != 0) return system_error(code, "start", words.front());
  outcome.exit_code = wait_for_child(child);
  return outcome;
}

}  // namespace straightway::tools
