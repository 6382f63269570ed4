#pragma once
// Whether a file is still as it was: its stamp, and who may be changing it.

#include <cstdint>
#include <ctime>

#include "straightway/result.hpp"

namespace straightway::os {

// What any change of a file's bytes by a system call alters. Stores through somebody's writable
// mapping may leave it as it is.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size_bytes = 0;
  std::int64_t changed_s = 0;  // ctime, which no program can set
  std::int64_t changed_ns = 0;
  std::int64_t modified_s = 0;
  std::int64_t modified_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

Result<FileStamp> read_stamp(int fd);

// Whether the clock that stamps files shows a later time than this one: then a change from now on
// is sure to alter the stamp. Linux before 6.13 stamps by the timer's tick, some file systems by
// the second.
bool is_settled(const FileStamp& stamp, const timespec& now);

// The stamp once it is settled; waits for that, up to two seconds. An error where the change time
// lies further in the future.
Result<FileStamp> read_settled_stamp(int fd);

// True where nobody has the file open for writing at this moment, so that no write is under way.
// False where somebody has, or where it cannot be found out (another user's file).
bool has_no_writers(int fd);

}  // namespace straightway::os
