#include "os/pinnable.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace straightway::os {
namespace {

constexpr std::array<std::string_view, 6> known_filesystems = {"ext2", "ext3",  "ext4",
                                                               "xfs",  "btrfs", "tmpfs"};
constexpr std::uint64_t attribute_dax = 0x00200000;  // STATX_ATTR_DAX

bool is_dax(int fd) {
  struct statx status{};
  return ::statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &status) == 0 &&
         (status.stx_attributes & attribute_dax) != 0;
}

}  // namespace

std::string why_not_pinnable(int fd, const FileFacts& facts) {
  if (facts.is_block_device) return "it is a block device, and only files can be pinned";
  if (facts.is_network) {
    return facts.filesystem + " is a network file system: changes made elsewhere are seen late";
  }
  if (std::ranges::find(known_filesystems, facts.filesystem) == known_filesystems.end()) {
    return "pinned pages of " + facts.filesystem +
           " are not known to be safe (ext2, ext3, ext4, xfs, btrfs and tmpfs are)";
  }
  struct stat status{};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return "it is no regular file";
  if (is_dax(fd)) return "it lies in persistent memory (DAX), not in the page cache";
  return "";
}

}  // namespace straightway::os
