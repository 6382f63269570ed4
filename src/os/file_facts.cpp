// What is true of an open file.

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "os/block_device.hpp"
#include "os/descriptor.hpp"
#include "os/direct_alignment.hpp"
#include "os/facts.hpp"
#include "os/mounts.hpp"
#include "os/syscalls.hpp"
#include "os/system_text.hpp"

namespace straightway::os {
namespace {

// Bits and fields of statx that older headers lack; the kernel's numbers.
constexpr unsigned statx_mount_id = 0x1000;
constexpr unsigned statx_direct_align = 0x2000;
struct StatxTail {  // at byte 0x90 of the kernel's struct statx
  std::uint64_t mount_id;
  std::uint32_t direct_memory_align;
  std::uint32_t direct_offset_align;
};
constexpr std::size_t statx_tail_offset = 0x90;
static_assert(sizeof(struct statx) >= statx_tail_offset + sizeof(StatxTail));

struct KernelAnswer {
  std::uint64_t mount_id = 0;
  std::optional<DirectAlignment> direct;
};

KernelAnswer ask_statx(int fd) {
  struct statx status{};
  if (::statx(fd, "", AT_EMPTY_PATH, statx_mount_id | statx_direct_align, &status) != 0) return {};
  StatxTail tail;
  std::memcpy(&tail, reinterpret_cast<const char*>(&status) + statx_tail_offset, sizeof tail);
  KernelAnswer answer;
  if ((status.stx_mask & statx_mount_id) != 0) answer.mount_id = tail.mount_id;
  if ((status.stx_mask & statx_direct_align) != 0) {
    answer.direct = DirectAlignment{tail.direct_offset_align, tail.direct_memory_align};
  }
  return answer;
}

std::string link_of_descriptor(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

// Opens the same file again with the same access; nothing is created, nothing is read.
bool opens_direct(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return false;
  const Descriptor direct(::open(link_of_descriptor(fd).c_str(), (flags & O_ACCMODE) | O_DIRECT |
                                                                     O_CLOEXEC | O_NONBLOCK |
                                                                     O_NOCTTY));
  return static_cast<bool>(direct);
}

std::string filesystem_by_descriptor(int fd) {
  struct statfs status;
  if (::fstatfs(fd, &status) != 0) return "";
  return filesystem_by_magic(static_cast<std::uint64_t>(status.f_type));
}

void read_mount(FileFacts& facts, std::string& source, const MountedFile& file,
                const std::string& root) {
  const auto mounts = parse_mounts(read_text(root + "/proc/self/mountinfo", 16 << 20).value_or(""));
  const Mount* mount = find_mount(mounts, file);
  if (mount != nullptr) {
    facts.filesystem = mount->filesystem;
    facts.mount_point = mount->mount_point;
    source = mount->source;
  } else {
    facts.filesystem = file.filesystem.empty() ? "unknown" : file.filesystem;
  }
  facts.is_network = is_network_filesystem(facts.filesystem);
}

// btrfs and the like give files an anonymous device number; their mount names the device.
std::optional<BlockDevice> device_of_source(const std::string& source, const std::string& root) {
  struct stat status;
  if (!source.starts_with("/dev/") || ::stat(source.c_str(), &status) != 0 ||
      !S_ISBLK(status.st_mode)) {
    return std::nullopt;
  }
  return read_block_device(major(status.st_rdev), minor(status.st_rdev), root);
}

// Asks behind the end of any file, where nothing is read and nothing waits.
bool takes_dontcache(int fd) {
  char byte;
  return kernel().pread_dontcache(fd, &byte, 1, std::uint64_t{1} << 62) == 0;
}

std::uint32_t page_bytes() { return static_cast<std::uint32_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

DirectAlignment choose_direct_alignment(std::string_view filesystem,
                                        const DirectWitnesses& witnesses) {
  if (is_memory_filesystem(filesystem)) return {};
  if (witnesses.statx) return *witnesses.statx;
  if (!witnesses.opens_direct) return {};
  const bool believable = std::has_single_bit(witnesses.logical_block_bytes);
  const auto align = believable ? witnesses.logical_block_bytes : witnesses.page_bytes;
  return {align, align};
}

FileFacts read_file_facts(int fd, const std::string& path, const std::string& root) {
  FileFacts facts;
  facts.path = path;
  facts.filesystem = "unknown";
  struct stat status;
  if (::fstat(fd, &status) != 0) return facts;
  facts.is_block_device = S_ISBLK(status.st_mode);
  const dev_t device = facts.is_block_device ? status.st_rdev : status.st_dev;
  const KernelAnswer answer = ask_statx(fd);
  std::string source;
  if (facts.is_block_device) {
    facts.filesystem = "block device";
  } else {
    read_mount(facts, source,
               {answer.mount_id, major(device), minor(device),
                read_link(link_of_descriptor(fd)).value_or(""), filesystem_by_descriptor(fd)},
               root);
  }
  auto block = read_block_device(major(device), minor(device), root);
  if (!block) block = device_of_source(source, root);
  if (block) {
    facts.device = block->device;
    facts.device_driver = block->driver;
  }
  if (!facts.is_block_device && !S_ISREG(status.st_mode)) return facts;
  const bool ask_by_opening = !answer.direct && !is_memory_filesystem(facts.filesystem);
  const DirectAlignment direct = choose_direct_alignment(
      facts.filesystem, {answer.direct, block ? block->logical_block_bytes : 0,
                         ask_by_opening && opens_direct(fd), page_bytes()});
  facts.direct_offset_align_bytes = direct.offset_bytes;
  facts.direct_memory_align_bytes = direct.memory_bytes;
  facts.dontcache = S_ISREG(status.st_mode) && !facts.is_network && takes_dontcache(fd);
  return facts;
}

Result<std::uint64_t> file_size(int fd, const std::string& path) {
  Error error;
  error.origin = ErrorOrigin::system;
  error.attempted = "find the size";
  error.path = path;
  struct stat status;
  std::uint64_t size_bytes = 0;
  if (::fstat(fd, &status) != 0) {
    error.code = errno;
  } else if (S_ISREG(status.st_mode)) {
    return static_cast<std::uint64_t>(status.st_size);
  } else if (S_ISBLK(status.st_mode)) {
    if (::ioctl(fd, BLKGETSIZE64, &size_bytes) == 0) return size_bytes;
    error.code = errno;
  } else {
    error.kind = ErrorKind::wrong_file_type;
    error.origin = ErrorOrigin::straightway;
    error.why = "it is neither a regular file nor a block device";
    return error;
  }
  error.kind = errno_kind(error.code);
  error.why = errno_text(error.code);
  return error;
}

}  // namespace straightway::os
