#include "os/peer_facts.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "os/block_device.hpp"
#include "os/mounts.hpp"
#include "os/system_text.hpp"

namespace straightway::os {
namespace {

constexpr unsigned statx_mount_id = 0x1000;
constexpr unsigned statx_unique_mount_id = 0x4000;  // Linux 6.8
constexpr std::size_t statx_mount_id_offset = 0x90;
constexpr int levels_limit = 8;  // of devices upon devices

// What is known of storage so far, and the PCI devices that it consists of.
struct Found {
  PeerStorage storage = PeerStorage::takes;
  std::vector<std::vector<std::string>> drives;  // each: the PCI addresses on the way to it

  void join(PeerStorage other) {
    if (storage == PeerStorage::refuses || other == PeerStorage::takes) return;
    storage = other;
  }
};

// The PCI addresses in a path of /sys/devices, the bridge next to the CPU first.
std::vector<std::string> pci_addresses(std::string_view path) {
  std::vector<std::string> addresses;
  while (!path.empty()) {
    const auto part = take_field(path, '/');
    if (is_pci_address(part)) addresses.emplace_back(part);
  }
  return addresses;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
  while (const dirent* entry = open ? ::readdir(open.get()) : nullptr) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  return names;
}

std::optional<std::uint64_t> device_number(const std::string& text) {
  std::string_view rest = text;
  const auto first = to_number(take_field(rest, ':'));
  const auto second = to_number(rest);
  if (!first || !second || *first > UINT32_MAX || *second > UINT32_MAX) return std::nullopt;
  return makedev(static_cast<unsigned>(*first), static_cast<unsigned>(*second));
}

void look_at(Found& found, std::uint64_t device, const std::string& root, int level);

// An array takes peer memory if the kernel is new enough and all its members do; how new cannot be
// told from the version, so it is tried.
void look_at_members(Found& found, const std::string& disk, const std::string& root, int level) {
  const auto members = names_in(disk + "/slaves");
  found.join(PeerStorage::unknown);
  for (const auto& member : members) {
    std::string path = disk;
    path.append("/slaves/").append(member).append("/dev");
    const auto number = device_number(read_text(path).value_or(""));
    number ? look_at(found, *number, root, level + 1) : found.join(PeerStorage::unknown);
  }
}

void look_at(Found& found, std::uint64_t device, const std::string& root, int level) {
  const auto block = read_block_device(major(device), minor(device), root);
  if (!block || level > levels_limit) return found.join(PeerStorage::unknown);
  const std::string number = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  const std::string here = root + "/sys/dev/block/" + number;
  if (block->driver == "md") return look_at_members(found, here, root, level);
  if (block->driver == "nvme") {
    const auto drive = pci_addresses(read_link(here).value_or(""));
    // A multipath head lies below no PCI device; whether it passes peer memory on depends on the
    // kernel.
    if (drive.empty()) return found.join(PeerStorage::unknown);
    found.drives.push_back(drive);
    return;
  }
  found.join(block->driver.empty() ? PeerStorage::unknown : PeerStorage::refuses);
}

// The options of the overlay with this device number, as its mount shows them.
std::optional<std::string> overlay_options(std::uint64_t device, const std::string& root) {
  const auto mounts = read_text(root + "/proc/self/mountinfo", 16 << 20).value_or("");
  std::string_view rest = mounts;
  while (!rest.empty()) {
    std::string_view line = take_field(rest, '\n');
    const auto dash = line.find(" - overlay ");
    if (dash == std::string_view::npos) continue;
    std::string_view head = line.substr(0, dash);
    take_field(head, ' ');
    take_field(head, ' ');
    if (device_number(std::string(take_field(head, ' '))) != device) continue;
    return std::string(line.substr(line.rfind(' ') + 1));
  }
  return std::nullopt;
}

// The folders that an overlay is made of; none where they cannot be told.
std::vector<std::string> overlay_layers(std::string_view options) {
  std::vector<std::string> layers;
  if (options.find('\\') != std::string_view::npos) return {};  // names that need unravelling
  while (!options.empty()) {
    std::string_view value = take_field(options, ',');
    const auto key = take_field(value, '=');
    const bool is_layer =
        key == "upperdir" || key == "lowerdir" || key == "lowerdir+" || key == "datadir+";
    while (is_layer && !value.empty()) {
      const auto layer = take_field(value, ':');
      if (!layer.empty()) layers.emplace_back(layer);
    }
  }
  return layers;
}

// Any of the layers may hold the file, so all must be file systems that hand memory on.
void look_at_overlay(Found& found, std::uint64_t device, const std::string& root) {
  const auto layers = overlay_layers(overlay_options(device, root).value_or(""));
  if (layers.empty()) return found.join(PeerStorage::unknown);
  for (const auto& layer : layers) {
    struct stat status{};
    struct statfs kind{};
    if (::stat(layer.c_str(), &status) != 0 || ::statfs(layer.c_str(), &kind) != 0) {
      return found.join(PeerStorage::unknown);
    }
    const std::string_view name = filesystem_by_magic(static_cast<std::uint64_t>(kind.f_type));
    if (name != "ext4" && name != "xfs") return found.join(PeerStorage::refuses);
    look_at(found, status.st_dev, root, 0);
  }
}

// Devices share the way as far as the first of their addresses agree.
PeerBridge bridge_between(const Found& found, const std::string& pci_device,
                          const std::string& root) {
  const auto memory = pci_addresses(read_link(pci_folder(pci_device, root)).value_or(""));
  if (memory.empty() || found.drives.empty()) return PeerBridge::unknown;
  const bool together = std::ranges::all_of(
      found.drives, [&](const auto& drive) { return drive.front() == memory.front(); });
  return together ? PeerBridge::one_switch : PeerBridge::host_bridge;
}

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string_view path;
};

// "7f0000000000-7f0000200000 rw-s 00000000 00:15 1234   /sys/devices/..."
std::optional<Mapping> parse_mapping(std::string_view line) {
  Mapping mapping;
  const char* start = line.data();
  const char* stop = start + line.size();
  const auto [dash, first] = std::from_chars(start, stop, mapping.begin, 16);
  if (first != std::errc() || dash == stop || *dash != '-') return std::nullopt;
  const auto [rest, second] = std::from_chars(dash + 1, stop, mapping.end, 16);
  if (second != std::errc()) return std::nullopt;
  const auto slash = line.find('/');
  if (slash != std::string_view::npos) mapping.path = line.substr(slash);
  return mapping;
}

Error no_mapping(std::uint64_t size_bytes, std::string why) {
  return {ErrorKind::invalid_argument,
          ErrorOrigin::straightway,
          0,
          "adopt " + std::to_string(size_bytes) + " bytes as peer memory",
          "",
          {},
          std::move(why),
          "map p2pmem/allocate of a PCI device, or name the device whose pages these are"};
}

}  // namespace

bool is_pci_address(std::string_view text) {
  constexpr std::string_view shape = "xx:xx.x";
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon < 4 || colon > 8) return false;
  const auto is_hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  const auto rest = text.substr(colon + 1);
  if (!std::ranges::all_of(text.substr(0, colon), is_hex) || rest.size() != shape.size()) {
    return false;
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 'x' ? !is_hex(rest[i]) : rest[i] != shape[i]) return false;
  }
  return true;
}

std::string pci_folder(const std::string& pci_device, const std::string& root) {
  return root + "/sys/bus/pci/devices/" + pci_device;
}

bool publishes_memory(const std::string& pci_device, const std::string& root) {
  return is_pci_address(pci_device) && is_directory(pci_folder(pci_device, root) + "/p2pmem");
}

FileStorage file_storage(int fd) {
  struct statx status{};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | statx_mount_id | statx_unique_mount_id,
              &status) != 0) {
    return {};
  }
  FileStorage storage;
  const bool is_block = S_ISBLK(status.stx_mode);
  storage.device = is_block ? makedev(status.stx_rdev_major, status.stx_rdev_minor)
                            : makedev(status.stx_dev_major, status.stx_dev_minor);
  if (!is_block) {
    std::memcpy(&storage.mount, reinterpret_cast<const char*>(&status) + statx_mount_id_offset,
                sizeof storage.mount);
  }
  return storage;
}

PeerFacts read_peer_facts(const FileStorage& storage, const std::string& filesystem,
                          const std::string& pci_device, const std::string& root) {
  PeerFacts facts;
  facts.device = pci_device;
  facts.published = publishes_memory(pci_device, root);
  Found found;
  filesystem == "overlay" ? look_at_overlay(found, storage.device, root)
                          : look_at(found, storage.device, root, 0);
  facts.storage = found.storage;
  facts.bridge = bridge_between(found, pci_device, root);
  return facts;
}

Result<std::string> device_of_mapping(std::uint64_t address, std::uint64_t size_bytes,
                                      const std::string& root) {
  constexpr std::string_view tail = "/p2pmem/allocate";
  const auto maps = read_text(root + "/proc/self/maps", 64 << 20).value_or("");
  std::string_view rest = maps;
  while (!rest.empty()) {
    const auto mapping = parse_mapping(take_field(rest, '\n'));
    if (!mapping || address < mapping->begin || address >= mapping->end) continue;
    if (!mapping->path.ends_with(tail)) break;
    const auto folder = mapping->path.substr(0, mapping->path.size() - tail.size());
    if (!is_pci_address(base_name(folder))) break;
    if (size_bytes > mapping->end - address) {
      return no_mapping(size_bytes, "the mapping there ends after " +
                                        std::to_string(mapping->end - address) + " bytes");
    }
    return std::string(base_name(folder));
  }
  return no_mapping(size_bytes, "no mapping of p2pmem/allocate lies at that address");
}

}  // namespace straightway::os
