#include "drive/verdict.hpp"

#include <cerrno>

namespace straightway::drive {
namespace {

// What the vendor's library answers where its direct path does not work here. Faults of the drive,
// of the arguments and of the GPU are not among them.
bool vendor_refuses(std::int64_t result) {
  switch (-result) {
    case 5001:  // driver not initialised
    case 5004:  // versions of library and nvidia-fs
    case 5006:  // driver closing
    case 5007:  // platform
    case 5008:  // this file
    case 5009:  // this GPU
    case 5010:  // nvidia-fs failed
    case 5016:  // more than may be pinned
    case 5017:  // the program's own registration at this address is shorter
    case 5018:  // file type
    case 5020:  // not O_DIRECT
    case 5027:  // file not registered
    case 5030:  // internal
    case 5033:  // nvidia-fs cannot be set up
    case 5034:  // switched off
    case 5036:  // GPU memory cannot be pinned
    case 5045:  // buffer registration
    case 5048:  // nvidia-fs failed inside
    case 5050:  // larger than may be moved at once
      return true;
    default:
      return false;
  }
}

}  // namespace

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
      return vendor_refuses(result) && (route == Route::nvfs || route == Route::p2pdma)
                 ? Verdict::fall_back
                 : Verdict::fail;
  }
}

}  // namespace straightway::drive
