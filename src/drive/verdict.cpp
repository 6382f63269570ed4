#include "drive/verdict.hpp"

#include <cerrno>

namespace straightway::drive {

Verdict judge(Direction direction, std::int64_t result, std::uint64_t wanted_bytes, bool direct_io,
              std::uint32_t attempts, Route route) {
  if (result >= static_cast<std::int64_t>(wanted_bytes)) return Verdict::done;
  if (result > 0) return Verdict::rest;
  if (result == 0 && direction == Direction::read) return Verdict::end_of_file;
  switch (result) {
    case 0:  // a write that took nothing
    case -EINTR:
    case -EAGAIN:
      return attempts < attempts_limit ? Verdict::again : Verdict::fail;
    // What file systems answer to O_DIRECT that they do not do, or not at this alignment.
    case -EINVAL:
    case -EOPNOTSUPP:
      return direct_io ? Verdict::fall_back : Verdict::fail;
    // A queue that takes no peer memory, or the way through the bridges; pages of another kind.
    case -EREMOTEIO:
    case -EFAULT:
      return direct_io && route == Route::p2pdma ? Verdict::fall_back : Verdict::fail;
    default:
      return Verdict::fail;
  }
}

}  // namespace straightway::drive
