#pragma once
// Which other processes of this user copy at this time on the same CPUs, and this process's word
// to them that it does.
//
// The word is a record lock (fcntl) on the file of the pid namespace, at the process's own number
// and as long as the copiers that it may use. The kernel keeps it: it says to whoever asks whose
// lock that is, gives none to a forked child, and takes it back when the process ends, however.
// Nothing is written or parsed, and whatever another process locks, it counts as one at most
// (docs/decisions/0099-neighbours-are-locks.md).

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "os/descriptor.hpp"

namespace straightway::os {

class Neighbours {
 public:
  // path: any file that all of them can read; it is opened at first use.
  explicit Neighbours(std::string path = "/proc/self/ns/pid") : path_(std::move(path)) {}

  // Says that this process copies with up to so many, until it withdraws or ends. Again is no harm:
  // the word is the process's, not this object's, and another's withdrawal takes it back as well.
  void announce(std::uint32_t copiers);
  void withdraw();
  // With how many copiers each neighbour works at most; nothing where none is seen, or the kernel
  // does not tell. same_quota: only those of the same cgroup.
  std::vector<std::uint32_t> look(bool same_quota);

 private:
  int file();

  const std::string path_;
  std::mutex opening_;
  Descriptor file_;
};

}  // namespace straightway::os
