#pragma once
// A body in a forked child, whose limits, signals and filters are its own.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

namespace straightway::tests {

// The sanitizers' allocators (of GCC 12) leave their locks taken in the child where another thread
// is inside them, and a thread that starts is. So threads under way get the time to have begun.
inline void settle_before_fork() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  ::usleep(200'000);
#endif
}

// The exit code, or minus the signal that ended it. 42: the body threw.
template <class Body>
int in_child(Body body) {
  settle_before_fork();
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 42;
    try {
      code = body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in the child: %s\n", error.what());
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace straightway::tests
