#include "os/sealable_memory.hpp"

#include <errno.h>
#include <sys/mman.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace straightway::os {

// A machine may demand the no-exec seal (vm.memfd_noexec), and an old kernel not know it.
Descriptor create_sealable_memory(const char* name) {
  const int fd = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  if (fd >= 0 || errno != EINVAL) return Descriptor(fd);
  return Descriptor(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
}

}  // namespace straightway::os
