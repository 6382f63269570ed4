#pragma once
// Threads that help a caller's own with a few pieces that can be done at the same time: a read of
// up to 1 MiB is over before the pump would have handed it out.
//
// A helper starts with the first job, and looks for the next one for a moment before it sleeps.
// Any thread may call run(); one job at a time.

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace straightway::drive {

class Crew {
 public:
  // helpers: beside the calling thread; 0 is allowed.
  explicit Crew(std::uint32_t helpers) : helpers_(helpers) {}
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  std::uint32_t helpers() const { return helpers_; }
  // Calls piece(i) once for each i below count, on this thread and those helpers that come in
  // time, and returns when all are done. meanwhile, where there is one, is called first, on this
  // thread. False, and nothing called, while another job runs. 1 <= count <= 65535. Neither throws.
  bool run(std::uint32_t count, const std::function<void(std::uint32_t)>& piece,
           const std::function<void()>& meanwhile = {});

 private:
  void help();
  bool take_part();
  void start_helpers();

  const std::uint32_t helpers_;
  std::mutex one_job_;
  // Job number (32 bits), its pieces (16), the next piece (16): taken together, so that a helper
  // that comes late takes nothing of the next job for one of the last.
  std::atomic<std::uint64_t> job_{0};
  std::atomic<const std::function<void(std::uint32_t)>*> piece_{nullptr};
  std::atomic<std::uint32_t> done_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace straightway::drive
