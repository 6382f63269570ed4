#include "os/mounts.hpp"

#include <algorithm>
#include <array>

#include "os/system_text.hpp"

namespace straightway::os {
namespace {

bool is_octal(char c) { return c >= '0' && c <= '7'; }

// Mount points are written with spaces, tabs, newlines and backslashes as \040 and the like.
std::string unescape(std::string_view field) {
  std::string text;
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '\\' && i + 3 < field.size() && is_octal(field[i + 1]) &&
        is_octal(field[i + 2]) && is_octal(field[i + 3])) {
      text += static_cast<char>((field[i + 1] - '0') * 64 + (field[i + 2] - '0') * 8 +
                                (field[i + 3] - '0'));
      i += 3;
    } else {
      text += field[i];
    }
  }
  return text;
}

// "36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root rw": any number of optional fields
// stand before the dash.
std::optional<Mount> parse_mount(std::string_view line) {
  const auto id = to_number(take_field(line, ' '));
  take_field(line, ' ');
  const auto device_major = to_number(take_field(line, ':'));
  const auto device_minor = to_number(take_field(line, ' '));
  take_field(line, ' ');
  const auto mount_point = take_field(line, ' ');
  if (!id || !device_major || !device_minor || mount_point.empty()) return std::nullopt;
  const auto dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  line.remove_prefix(dash + 3);
  const auto filesystem = take_field(line, ' ');
  const auto source = take_field(line, ' ');
  return Mount{*id,
               static_cast<std::uint32_t>(*device_major),
               static_cast<std::uint32_t>(*device_minor),
               unescape(mount_point),
               unescape(filesystem),
               unescape(source)};
}

// Later mounts cover earlier ones on the same point, hence >=.
template <class Accept>
const Mount* longest(const std::vector<Mount>& mounts, const Accept& accept) {
  const Mount* best = nullptr;
  for (const Mount& mount : mounts) {
    if (!accept(mount)) continue;
    if (best == nullptr || mount.mount_point.size() >= best->mount_point.size()) best = &mount;
  }
  return best;
}

struct Magic {
  std::uint64_t number;
  const char* name;
};

constexpr std::array<Magic, 32> magics = {{
    {0xEF53, "ext4"},          {0x58465342, "xfs"},      {0x9123683E, "btrfs"},
    {0x01021994, "tmpfs"},     {0x794C7630, "overlay"},  {0x6969, "nfs"},
    {0xFF534D42, "cifs"},      {0xFE534D42, "smb3"},     {0x01021997, "9p"},
    {0x00C36400, "ceph"},      {0x65735546, "fuse"},     {0x858458F6, "ramfs"},
    {0x958458F6, "hugetlbfs"}, {0x73717368, "squashfs"}, {0xE0F5E1E2, "erofs"},
    {0x2FC12FC1, "zfs"},       {0x0BD00BD0, "lustre"},   {0x47504653, "gpfs"},
    {0xF2F52010, "f2fs"},      {0xF15F, "ecryptfs"},     {0x9FA0, "proc"},
    {0x62656572, "sysfs"},     {0xCA451A4E, "bcachefs"}, {0x2011BAB0, "exfat"},
    {0x4D44, "vfat"},          {0x7366746E, "ntfs3"},    {0x9660, "iso9660"},
    {0x5346414F, "afs"},       {0x7461636F, "ocfs2"},    {0x01161970, "gfs2"},
    {0x19830326, "beegfs"},    {0x6165676C, "pstore"},
}};

constexpr std::array<std::string_view, 22> network_filesystems = {
    "nfs",      "nfs4",   "cifs",      "smb3",    "smbfs", "9p",   "ceph",     "lustre",
    "gpfs",     "beegfs", "wekafs",    "panfs",   "afs",   "coda", "orangefs", "pvfs2",
    "virtiofs", "fuse",   "glusterfs", "quobyte", "gfs2",  "ocfs2"};

constexpr std::array<std::string_view, 6> memory_filesystems = {"tmpfs",    "ramfs", "hugetlbfs",
                                                                "devtmpfs", "proc",  "sysfs"};

}  // namespace

std::vector<Mount> parse_mounts(std::string_view mountinfo) {
  std::vector<Mount> mounts;
  while (!mountinfo.empty()) {
    if (auto mount = parse_mount(take_field(mountinfo, '\n'))) mounts.push_back(std::move(*mount));
  }
  return mounts;
}

bool contains_path(std::string_view mount_point, std::string_view path) {
  if (!path.starts_with(mount_point)) return false;
  return mount_point.ends_with('/') || path.size() == mount_point.size() ||
         path[mount_point.size()] == '/';
}

const Mount* find_mount(const std::vector<Mount>& mounts, const MountedFile& file) {
  const auto contains = [&](const Mount& mount) {
    return contains_path(mount.mount_point, file.path);
  };
  const auto same_device = [&](const Mount& mount) {
    return mount.device_major == file.device_major && mount.device_minor == file.device_minor;
  };
  const auto same_id = [&](const Mount& mount) {
    return file.mount_id != 0 && mount.id == file.mount_id;
  };
  if (const Mount* mount = longest(
          mounts, [&](const Mount& m) { return same_id(m) && (contains(m) || same_device(m)); })) {
    return mount;
  }
  if (const Mount* mount =
          longest(mounts, [&](const Mount& m) { return same_device(m) && contains(m); })) {
    return mount;
  }
  if (const Mount* mount = longest(mounts, same_device)) return mount;
  return longest(mounts, [&](const Mount& m) {
    return contains(m) && !file.filesystem.empty() && m.filesystem == file.filesystem;
  });
}

const char* filesystem_by_magic(std::uint64_t magic) {
  // Some architectures sign-extend f_type.
  for (const Magic& known : magics) {
    if (known.number == (magic & 0xFFFFFFFF)) return known.name;
  }
  return "";
}

bool is_network_filesystem(std::string_view filesystem) {
  return filesystem.starts_with("fuse.") || std::ranges::count(network_filesystems, filesystem) > 0;
}

bool is_memory_filesystem(std::string_view filesystem) {
  return std::ranges::count(memory_filesystems, filesystem) > 0;
}

}  // namespace straightway::os
