#pragma once
// A thread that starts what a stream has come to. A stream's own callback may call nothing of CUDA,
// so it hands its transfer over and waits.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace straightway::cufile {

class Starter {
 public:
  // The process's, started with the first call; a forked child gets its own. Left alone at exit.
  static Starter& of_process();

  // Runs task later, in order. Tasks do not block.
  void post(std::function<void()> task);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool started_ = false;
};

}  // namespace straightway::cufile
