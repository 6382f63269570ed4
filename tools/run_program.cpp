#include "run_program.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "arguments.hpp"
#include "interrupt.hpp"
#include "os/descriptor.hpp"

namespace straightway::tools {
namespace {

// What asks a program for something. Those that stop and go on keep their effect on both.
constexpr std::array passed_on = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

sigset_t waited_for() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : passed_on) sigaddset(&set, signal);
  sigaddset(&set, SIGCHLD);
  return set;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.data()));
  result.push_back(nullptr);
  return result;
}

// In the child; the errno goes to the parent, by a pipe that a successful exec closes.
[[noreturn]] void become(char* const* words, char* const* environment, const sigset_t& mask,
                         int report) {
  if (!broken_pipes_were_ignored()) std::signal(SIGPIPE, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execvpe(words[0], words, environment);
  const int code = errno;
  static_cast<void>(!::write(report, &code, sizeof(code)));
  ::_exit(127);
}

// The errno of exec; 0 where the program runs.
int start_code(int report) {
  int code = 0;
  ssize_t got = -1;
  do {
    got = ::read(report, &code, sizeof(code));
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof(code)) ? code : 0;
}

// The terminal sends Ctrl-C to every process in the foreground, so to the program too.
bool is_from_terminal(const siginfo_t& info) { return info.si_code == SI_KERNEL; }

ProgramEnd wait_for_end(pid_t program, const sigset_t& signals) {
  for (;;) {
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&signals, &info);
    if (signal > 0 && signal != SIGCHLD && !is_from_terminal(info)) ::kill(program, signal);
    int status = 0;
    if (::waitpid(program, &status, WNOHANG) != program) continue;
    if (WIFSIGNALED(status)) return {128 + WTERMSIG(status), WTERMSIG(status)};
    return {WEXITSTATUS(status), 0};
  }
}

}  // namespace

Result<ProgramEnd> run_program(const std::vector<std::string>& words,
                               const std::vector<std::string>& environment) {
  const sigset_t signals = waited_for();
  sigset_t before;
  // A parent that ignored it (as some schedulers do) would have the kernel take the status away.
  std::signal(SIGCHLD, SIG_DFL);
  ::sigprocmask(SIG_BLOCK, &signals, &before);  // until we end: nothing of ours is cut short
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error(errno, "make a pipe", "");
  const os::Descriptor from(ends[0]);
  os::Descriptor to(ends[1]);
  const auto word_pointers = pointers(words);
  const auto environment_pointers = pointers(environment);
  const pid_t program = ::fork();
  if (program < 0) return system_error(errno, "start", words.front());
  if (program == 0) become(word_pointers.data(), environment_pointers.data(), before, to.get());
  to = os::Descriptor();
  if (const int code = start_code(from.get()); code != 0) {
    ::waitpid(program, nullptr, 0);
    return system_error(code, "start", words.front());
  }
  return wait_for_end(program, signals);
}

}  // namespace straightway::tools
