#pragma once
// Waiting for another thread or a device for a few microseconds, without sleeping.

#include <chrono>

namespace straightway::os {

// Tells the processor that this thread waits; 0.1 to 1 us, as the processor takes it.
inline void pause_briefly() {
  for (int i = 0; i < 30; ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
}

// Looks until `done` says true, for `most` at the longest. Whether it did.
template <class Done>
bool look_for(std::chrono::nanoseconds most, const Done& done) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    pause_briefly();
  }
  return true;
}

}  // namespace straightway::os
