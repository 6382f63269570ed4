#include "api/preallocation.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>

namespace straightway {

bool ends_behind_limit(const FileRange& range) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && range.offset + range.size_bytes > limit.rlim_cur;
}

Preallocation preallocate(const os::Syscalls& syscalls, int fd, std::uint64_t file_size_bytes,
                          const FileRange& range) {
  const auto end_bytes = range.offset + range.size_bytes;
  if (end_bytes <= file_size_bytes || ends_behind_limit(range)) return {};
  static_cast<void>(syscalls.fallocate(fd, range.offset, range.size_bytes));
  return {file_size_bytes, end_bytes};  // where it fails, a part may have been allocated
}

void undo(const os::Syscalls& syscalls, int fd, const Preallocation& made, const FileRange& range) {
  struct stat status{};
  if (made.end_bytes == 0 || ::fstat(fd, &status) != 0) return;
  const auto size_bytes = static_cast<std::uint64_t>(status.st_size);
  const auto keep_bytes = std::max(made.before_bytes, std::min(size_bytes, range.offset));
  if (size_bytes > made.end_bytes || size_bytes <= keep_bytes) return;
  static_cast<void>(syscalls.truncate(fd, keep_bytes));
}

}  // namespace straightway
