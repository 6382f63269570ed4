#include "cufile/handles.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <atomic>
#include <mutex>

namespace straightway::cufile {
namespace {

// Never given twice, over all sessions: a handle of before a close stays unknown. The tag lies
// outside every address space.
void* next_token() {
  static std::atomic<std::uint64_t> count{0};
  constexpr std::uint64_t tag = 0x5357'0000'0000'0000;  // "SW"
  return reinterpret_cast<void*>(tag + 16 * ++count);
}

bool is_usable_type(mode_t mode) { return S_ISREG(mode) || S_ISBLK(mode); }

// Flags whose meaning positioned I/O would break.
bool has_refused_flag(int flags) {
  if ((flags & O_TMPFILE) == O_TMPFILE) return true;
  return (flags & (O_APPEND | O_NONBLOCK | O_NOFOLLOW | O_PATH)) != 0;
}

}  // namespace

std::optional<abi::Code> refuse_descriptor(int fd) {
  struct stat status{};
  struct statfs filesystem{};
  const int flags = ::fcntl(fd, F_GETFL);
  if (fd < 0 || flags < 0 || ::fstat(fd, &status) != 0) return abi::invalid_value;
  if (!is_usable_type(status.st_mode)) return abi::invalid_file_type;
  if (has_refused_flag(flags)) return abi::invalid_file_open_flag;
  if (::fstatfs(fd, &filesystem) == 0 && filesystem.f_type == PROC_SUPER_MAGIC) {
    return abi::handle_not_registered;
  }
  return std::nullopt;
}

void* HandleTable::add(const std::shared_ptr<Handle>& handle) {
  const std::unique_lock lock(mutex_);
  if (!handle->userspace && by_fd_.contains(handle->fd)) return nullptr;
  handle->token = next_token();
  by_token_.emplace(handle->token, handle);
  if (!handle->userspace) by_fd_.emplace(handle->fd, handle->token);
  return handle->token;
}

bool HandleTable::has_fd(int fd) const {
  const std::shared_lock lock(mutex_);
  return by_fd_.contains(fd);
}

std::shared_ptr<Handle> HandleTable::find(const void* token) const {
  const std::shared_lock lock(mutex_);
  const auto found = by_token_.find(token);
  return found == by_token_.end() ? nullptr : found->second;
}

std::shared_ptr<Handle> HandleTable::remove(const void* token) {
  const std::unique_lock lock(mutex_);
  const auto found = by_token_.find(token);
  if (found == by_token_.end()) return nullptr;
  auto handle = std::move(found->second);
  by_token_.erase(found);
  if (!handle->userspace) by_fd_.erase(handle->fd);
  return handle;
}

std::size_t HandleTable::size() const {
  const std::shared_lock lock(mutex_);
  return by_token_.size();
}

}  // namespace straightway::cufile
