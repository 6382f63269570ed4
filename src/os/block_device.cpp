#include "os/block_device.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "os/system_text.hpp"

namespace straightway::os {
namespace {

// Devices without a driver link: the kernel names them after what they are.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> virtual_devices = {{
    {"dm-", "device-mapper"},
    {"md", "md"},
    {"loop", "loop"},
    {"zram", "zram"},
    {"nbd", "nbd"},
    {"ram", "ramdisk"},
    {"pmem", "pmem"},
}};

// "nvme" for a drive on this machine's bus, "nvme-tcp" and the like for one behind a network.
std::string nvme_driver(const std::string& disk) {
  auto transport = read_text(disk + "/device/transport", 32);
  if (!transport) return "nvme";
  while (!transport->empty() && transport->back() == '\n') transport->pop_back();
  return transport->empty() || *transport == "pcie" ? "nvme" : "nvme-" + *transport;
}

std::string driver_of(const std::string& disk, std::string_view name) {
  for (const auto& [prefix, driver] : virtual_devices) {
    if (name.size() > prefix.size() && name.starts_with(prefix) &&
        std::isdigit(static_cast<unsigned char>(name[prefix.size()])) != 0) {
      return std::string(driver);
    }
  }
  if (name.starts_with("nvme")) return nvme_driver(disk);
  const auto link = read_link(disk + "/device/driver");
  if (!link) return "";
  std::string driver(base_name(*link));
  std::ranges::replace(driver, '_', '-');
  return driver;
}

}  // namespace

std::optional<BlockDevice> read_block_device(std::uint32_t device_major, std::uint32_t device_minor,
                                             const std::string& root) {
  const std::string blocks = root + "/sys/dev/block/";
  const auto link =
      read_link(blocks + std::to_string(device_major) + ":" + std::to_string(device_minor));
  if (!link) return std::nullopt;
  std::string disk = link->starts_with('/') ? root + *link : blocks + *link;
  if (exists(disk + "/partition")) disk.resize(disk.rfind('/'));
  std::string name(base_name(disk));
  BlockDevice found;
  found.driver = driver_of(disk, name);
  found.logical_block_bytes =
      static_cast<std::uint32_t>(read_number(disk + "/queue/logical_block_size").value_or(0));
  std::ranges::replace(name, '!', '/');  // how sysfs writes a slash in a device's name
  found.device = "/dev/" + name;
  return found;
}

}  // namespace straightway::os
