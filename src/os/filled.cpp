#include "os/filled.hpp"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <limits>
#include <span>

namespace straightway::os {
namespace {

constexpr std::size_t extents_at_once = 64;
constexpr std::uint32_t no_block_of_its_own =
    FIEMAP_EXTENT_UNWRITTEN | FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC |
    FIEMAP_EXTENT_ENCODED | FIEMAP_EXTENT_DATA_ENCRYPTED | FIEMAP_EXTENT_NOT_ALIGNED;

// The first extents from an offset on.
class Extents {
 public:
  bool ask(int fd, std::uint64_t offset, std::uint32_t flags) {
    *head_ = {};
    head_->fm_start = offset;
    head_->fm_length = std::numeric_limits<std::int64_t>::max() - offset;
    head_->fm_flags = flags;
    head_->fm_extent_count = extents_at_once;
    return ::ioctl(fd, FS_IOC_FIEMAP, head_) == 0;
  }
  std::span<const fiemap_extent> found() const {
    return {head_->fm_extents, std::min<std::size_t>(head_->fm_mapped_extents, extents_at_once)};
  }

 private:
  static constexpr auto size_bytes = sizeof(fiemap) + extents_at_once * sizeof(fiemap_extent);
  alignas(fiemap) std::array<std::byte, size_bytes> memory_;
  fiemap* const head_ = reinterpret_cast<fiemap*>(memory_.data());
};

std::int64_t seek_hole(int fd, std::uint64_t offset) {
  const auto hole = ::lseek(fd, static_cast<off_t>(offset), SEEK_HOLE);
  if (hole < 0 && errno == ENXIO) return static_cast<std::int64_t>(offset);  // behind the end
  return hole < 0 ? -errno : hole;
}

std::int64_t look(int fd, std::uint64_t offset, std::uint64_t enough, std::uint32_t flags) {
  Extents extents;
  auto end = offset;
  do {
    if (!extents.ask(fd, end, flags)) {
      return errno == EOPNOTSUPP || errno == ENOTTY ? seek_hole(fd, end) : -errno;
    }
    for (const auto& extent : extents.found()) {
      if (extent.fe_logical > end || (extent.fe_flags & no_block_of_its_own) != 0) {
        return static_cast<std::int64_t>(end);
      }
      end = extent.fe_logical + extent.fe_length;
    }
  } while (extents.found().size() == extents_at_once && end < enough);
  return static_cast<std::int64_t>(end);
}

}  // namespace

std::int64_t filled_end(int fd, std::uint64_t offset, std::uint64_t enough) {
  const auto end = look(fd, offset, enough, 0);
  if (end < 0 || static_cast<std::uint64_t>(end) >= enough) return end;
  return look(fd, offset, enough, FIEMAP_FLAG_SYNC);
}

}  // namespace straightway::os
