#pragma once
// The file that a copy becomes: written under a name of its own beside the target, and given the
// target's name only when it is whole.

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "straightway/file.hpp"

namespace straightway::tools {

class CopyTarget {
 public:
  // Refuses a folder, anything that is no regular file, the source itself and, without force, what
  // exists. Space for size_bytes is reserved where the file system can do that.
  static Result<CopyTarget> begin(const std::string& path, const struct stat& source,
                                  std::uint64_t size_bytes, bool force);
  CopyTarget(CopyTarget&& other) noexcept;
  CopyTarget& operator=(CopyTarget&&) = delete;
  ~CopyTarget();  // removes what was not finished

  int descriptor() const { return fd_; }
  // Gives it the mode bits and the name; makes the name durable too for Sync::full.
  Result<void> finish(Sync sync);

 private:
  CopyTarget() = default;
  Result<void> reserve(std::uint64_t size_bytes);
  Result<void> give_name();
  std::string path_;        // with links followed
  std::string unfinished_;  // the name until it is whole; empty: nothing to remove
  int fd_ = -1;
  mode_t mode_ = 0;
  bool force_ = false;
};

}  // namespace straightway::tools
