#include "drive/account.hpp"

#include <cerrno>
#include <utility>

#include "os/cufile_codes.hpp"
#include "os/facts.hpp"

namespace straightway::drive {
namespace {

constexpr std::int32_t cuda_failed = 5011;

}  // namespace

Evidence own_evidence(Route route, Direction direction, std::uint64_t bytes,
                      std::int64_t disk_bytes) {
  if (bytes == 0) return {};
  if (route == Route::buffered || route == Route::staged || route == Route::pinned_cache) {
    return {EvidenceKind::observed, Witness::own_copy, Scope::request};
  }
  if (route == Route::direct_host && direction == Direction::read &&
      disk_bytes >= static_cast<std::int64_t>(bytes)) {
    return {EvidenceKind::observed, Witness::thread_io, Scope::request};
  }
  if (route == Route::nvfs) {
    return {EvidenceKind::claimed, Witness::vendor_library, Scope::request};
  }
  return {EvidenceKind::claimed, Witness::kernel, Scope::request};
}

Error transfer_error(Direction direction, const std::string& path, FileRange range,
                     std::int32_t code) {
  Error error{os::errno_kind(code),
              ErrorOrigin::system,
              code,
              std::string(to_string(direction)) + " " + std::to_string(range.size_bytes) +
                  (direction == Direction::read ? " bytes of" : " bytes to"),
              path,
              range.offset,
              os::errno_text(code),
              ""};
  if (os::is_cufile_code(code)) {
    const auto text = os::describe_cufile(code);
    error.origin = ErrorOrigin::cufile;
    error.kind = code == cuda_failed ? ErrorKind::device : ErrorKind::io;
    error.why = os::cufile_text(code);
    error.advice = text.advice;
  }
  if (code == EFAULT) {
    error.kind = ErrorKind::invalid_argument;
    error.why += " (the memory cannot be used there)";
    error.advice = "check that it is still allocated, and large enough";
  }
  if (code == EBADF) {
    error.kind = ErrorKind::permission;
    error.why = "the file was not opened for this (" + error.why + ")";
    error.advice = direction == Direction::read ? "open it with mode 'r' or 'r+'"
                                                : "open it with mode 'r+', 'w' or 'x'";
  }
  return error;
}

Error deadline_error(std::string attempted, const std::string& path, std::string why) {
  return {ErrorKind::deadline_exceeded,
          ErrorOrigin::system,
          ETIMEDOUT,
          std::move(attempted),
          path,
          {},
          std::move(why),
          "allow more time, or ask for less at once"};
}

Error false_end_error(const std::string& path, FileRange range) {
  auto error = transfer_error(Direction::read, path, range, 0);
  error.kind = ErrorKind::route_refused;
  error.origin = ErrorOrigin::cufile;
  error.why = "the vendor's library said that the file ends before these bytes, and it does not";
  error.advice = "use policy auto, which reads them another way";
  return error;
}

}  // namespace straightway::drive
