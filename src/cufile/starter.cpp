#include "cufile/starter.hpp"

#include <unistd.h>

#include <utility>

namespace straightway::cufile {
namespace {

struct Owned {
  pid_t pid = 0;
  Starter* starter = nullptr;
};

}  // namespace

Starter& Starter::of_process() {
  static std::mutex mutex;
  static Owned owned;
  const std::lock_guard lock(mutex);
  if (owned.pid != ::getpid()) owned = {::getpid(), new Starter};
  return *owned.starter;
}

void Starter::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (!started_) std::thread([this] { run(); }).detach();
  started_ = true;
  tasks_.push_back(std::move(task));
  changed_.notify_one();
}

void Starter::run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !tasks_.empty(); });
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
  }
}

}  // namespace straightway::cufile
