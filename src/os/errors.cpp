// errno as text and as a kind.

#include <cerrno>
#include <cstring>

#include "os/facts.hpp"

namespace straightway::os {

std::string errno_text(int code) {
  // The _np forms are thread safe and do not depend on the locale.
  const char* name = ::strerrorname_np(code);
  const char* meaning = ::strerrordesc_np(code);
  if (name == nullptr || meaning == nullptr) {
    return "errno " + std::to_string(code) + ": unknown error";
  }
  return std::string(name) + ": " + meaning;
}

ErrorKind errno_kind(int code) {
  switch (code) {
    case ENOENT:
    case ENOTDIR:
      return ErrorKind::not_found;
    case EISDIR:
    case ESPIPE:
    case ENODEV:
    case ENXIO:
    case ENOTBLK:
      return ErrorKind::wrong_file_type;
    case EACCES:
    case EPERM:
    case EROFS:
    case ETXTBSY:
      return ErrorKind::permission;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return ErrorKind::no_space;
    case ENOMEM:
      return ErrorKind::out_of_memory;
    case EMFILE:
    case ENFILE:
      return ErrorKind::too_many_files;
    case EINVAL:
    case EFAULT:
    case EBADF:
    case EEXIST:
    case ELOOP:
    case ENAMETOOLONG:
    case EOVERFLOW:
      return ErrorKind::invalid_argument;
    case ENOSYS:
    case EOPNOTSUPP:
      return ErrorKind::unsupported;
    case ECANCELED:
      return ErrorKind::cancelled;
    default:
      return ErrorKind::io;
  }
}

}  // namespace straightway::os
