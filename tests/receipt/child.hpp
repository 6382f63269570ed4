#pragma once
// A forked process that runs a body and answers with its exit code.

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <utility>

#include "straightway/result.hpp"

namespace straightway::receipt_tests {

// The value, or the end of the test with the error's reason.
template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "cannot %s: %s\n", result.error().attempted.c_str(),
               result.error().why.c_str());
  std::abort();
}

class Child {
 public:
  explicit Child(const std::function<int(Child&)>& body) {
    if (::pipe2(up_, O_CLOEXEC) != 0 || ::pipe2(down_, O_CLOEXEC) != 0) ::abort();
    pid_ = ::fork();
    if (pid_ != 0) return;
    std::swap(up_, down_);  // what one end writes, the other reads
    ::_exit(body(*this));
  }
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
    for (const int fd : {up_[0], up_[1], down_[0], down_[1]}) ::close(fd);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  void tell() const {
    if (::write(down_[1], "x", 1) != 1) ::abort();
  }
  void listen() const {
    char byte = 0;
    if (::read(up_[0], &byte, 1) != 1) ::_exit(99);
  }
  void kill(int signal) const { ::kill(pid_, signal); }
  void wait_stopped() const { ::waitpid(pid_, nullptr, WUNTRACED); }
  // The exit code, or minus the signal.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int up_[2] = {-1, -1};
  int down_[2] = {-1, -1};
};

}  // namespace straightway::receipt_tests
