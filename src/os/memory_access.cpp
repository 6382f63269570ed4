#include "os/memory_access.hpp"

#include <sys/uio.h>
#include <unistd.h>

namespace straightway::os {

bool is_readable(const void* address) {
  char byte = 0;
  const iovec here{&byte, 1};
  const iovec there{const_cast<void*>(address), 1};
  return ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) == 1;
}

}  // namespace straightway::os
