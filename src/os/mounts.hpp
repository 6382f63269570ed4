#pragma once
// Which mount a file lies on, and what kind of file system that is.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace straightway::os {

struct Mount {
  std::uint64_t id = 0;
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::string mount_point;
  std::string filesystem;  // "ext4", "fuse.sshfs"
  std::string source;      // "/dev/vda1", "server:/export"
  bool operator==(const Mount&) const = default;
};

// The text of /proc/self/mountinfo; lines that do not parse are left out.
std::vector<Mount> parse_mounts(std::string_view mountinfo);

// What the kernel says of an open file.
struct MountedFile {
  std::uint64_t mount_id = 0;  // 0: not known (Linux before 5.8)
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::string path;        // absolute and free of links, or empty
  std::string filesystem;  // by statfs, or empty
};

// By mount ID; else, of the mounts of the same device, the one with the longest mount point that
// contains the path; else (btrfs gives files device numbers that no mount has) the longest mount
// point of a file system of the same kind. Null where none fits.
const Mount* find_mount(const std::vector<Mount>& mounts, const MountedFile& file);

// "/data" contains "/data" and "/data/x", but not "/database".
bool contains_path(std::string_view mount_point, std::string_view path);

// The name for a magic number of statfs, or "".
const char* filesystem_by_magic(std::uint64_t magic);
// Whether its bytes come from another machine or from a user program that may fetch them there.
bool is_network_filesystem(std::string_view filesystem);
// Whether its files lie in memory, so that O_DIRECT means nothing even where it is accepted.
bool is_memory_filesystem(std::string_view filesystem);

}  // namespace straightway::os
