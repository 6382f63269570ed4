#include "memory/fork_guard.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace straightway::memory {
namespace {

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

ForkGuard::ForkGuard() : mark_(nullptr), pid_(getpid()) {
  void* page =
      mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (madvise(page, page_bytes(), MADV_WIPEONFORK) != 0) {
    munmap(page, page_bytes());
    return;
  }
  mark_ = static_cast<char*>(page);
  *mark_ = 1;
}

ForkGuard::~ForkGuard() {
  if (mark_ != nullptr) munmap(const_cast<char*>(mark_), page_bytes());
}

bool ForkGuard::forked() const { return mark_ != nullptr ? *mark_ == 0 : getpid() != pid_; }

Result<void> ForkGuard::check(const char* attempted) const {
  if (!forked()) return {};
  return Error{
      .kind = ErrorKind::forked,
      .attempted = attempted,
      .path = {},
      .offset = {},
      .why =
          "the GPU was in use before this process was forked, and CUDA does not work "
          "in a forked child",
      .advice = "start the process with spawn or exec, or use the GPU only after the fork"};
}

}  // namespace straightway::memory
