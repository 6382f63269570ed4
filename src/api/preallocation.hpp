#pragma once
// The space of a direct write behind the end of a file. O_DIRECT writers that lengthen a file wait
// for each other in most file systems; those that write into space that is there do not.

#include <cstdint>

#include "api/open_file.hpp"
#include "straightway/facts.hpp"

namespace straightway {

struct Preallocation {
  std::uint64_t before_bytes = 0;  // the file's size
  std::uint64_t end_bytes = 0;     // 0: nothing was asked for
};

// Lengthens the file to the end of the range and gives it its blocks. An offer: where the file
// system does not take it, the write does without, and says itself what it lacks.
Preallocation preallocate(const os::Syscalls& syscalls, int fd, std::uint64_t file_size_bytes,
                          const FileRange& range);
// After a write that failed: the file is as long as before, unless others lengthened it meanwhile.
// Never cut before the range, where other writes may have been.
void undo(const os::Syscalls& syscalls, int fd, const Preallocation& made, const FileRange& range);
// Whether the range ends behind the process's file size limit. There the kernel sends SIGXFSZ,
// which ends a program that has no handler; the threads that drive transfers block it and get
// EFBIG.
bool ends_behind_limit(const FileRange& range);

}  // namespace straightway
