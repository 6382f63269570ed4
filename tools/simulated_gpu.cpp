#include "simulated_gpu.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "arguments.hpp"
#include "interrupt.hpp"

namespace straightway::tools {
namespace {

constexpr const char* library_name = "libcuda.so.1";
constexpr std::size_t output_limit_bytes = 16 << 20;

std::filesystem::path own_path() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

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
  const auto beside = own_path().parent_path().parent_path() / "tests" / "fakes" / "cuda";
  if (has_library(beside)) return std::optional(beside.string());
  return std::optional<std::string>();
}

Result<ChildOutcome> run_with_simulated_gpu(const std::string& folder,
                                            const std::vector<std::string>& arguments,
                                            bool capture) {
  std::vector<std::string> words = {own_path().string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment = child_environment(folder);
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
  if (code != 0) return system_error(code, "start the simulation", words.front());
  outcome.exit_code = wait_for_child(child);
  return outcome;
}

}  // namespace straightway::tools
