#pragma once
// Knows whether this process is a forked child of the one that made it. Costs one memory read:
// the mark lies on a page that the kernel clears in a child.

#include <sys/types.h>

#include "straightway/result.hpp"

namespace straightway::memory {

class ForkGuard {
 public:
  ForkGuard();
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  bool forked() const;
  // ErrorKind::forked in a child. attempted: "copy 4096 bytes to cuda:0".
  Result<void> check(const char* attempted) const;

 private:
  volatile char* mark_;  // null where the kernel has no MADV_WIPEONFORK
  pid_t pid_;
};

}  // namespace straightway::memory
