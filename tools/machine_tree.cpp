#include "machine_tree.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "os/mounts.hpp"
#include "os/system_text.hpp"

namespace straightway::tools {
namespace {

constexpr int deepest_stack = 8;  // LVM on crypt on md is three

// "0000:41:00.0"
bool is_pci_address(std::string_view name) {
  constexpr std::string_view form = "xxxx:xx:xx.x";
  if (name.size() != form.size()) return false;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const bool fits = form[i] == 'x' ? std::isxdigit(static_cast<unsigned char>(name[i])) != 0
                                     : name[i] == form[i];
    if (!fits) return false;
  }
  return true;
}

std::string strip_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

// The file system's own options: the last field of a line of mountinfo.
std::string options_of(std::string_view mountinfo, std::uint64_t id) {
  const std::string start = std::to_string(id) + " ";
  while (!mountinfo.empty()) {
    const auto line = os::take_field(mountinfo, '\n');
    if (line.starts_with(start)) return std::string(line.substr(line.rfind(' ') + 1));
  }
  return "";
}

}  // namespace

bool MachineTree::has(const std::string& path) const {
  std::error_code code;
  return std::filesystem::exists(std::filesystem::symlink_status(root_ + path, code));
}

std::optional<std::string> MachineTree::text(const std::string& path) const {
  auto found = os::read_text(root_ + path);
  if (!found) return std::nullopt;
  return strip_end(std::move(*found));
}

std::optional<bool> MachineTree::has_line(const std::string& path,
                                          const std::string& wanted) const {
  std::ifstream file(root_ + path);
  if (!file) return std::nullopt;
  for (std::string line; std::getline(file, line);) {
    if (line.find(wanted) != std::string::npos) return true;
  }
  return false;
}

std::vector<std::string> MachineTree::names(const std::string& folder) const {
  std::vector<std::string> found;
  std::error_code code;
  for (std::filesystem::directory_iterator at(root_ + folder, code), end; !code && at != end;
       at.increment(code)) {
    found.push_back(at->path().filename().string());
  }
  std::ranges::sort(found);
  return found;
}

std::string MachineTree::kernel() const { return text("/proc/sys/kernel/osrelease").value_or(""); }

std::pair<unsigned, unsigned> MachineTree::kernel_version() const {
  const std::string release = kernel();
  std::string_view rest = release;
  const auto first = os::to_number(os::take_field(rest, '.'));
  const auto second = os::to_number(rest);
  if (!first || !second || *first > 999 || *second > 999) return {0, 0};
  return {static_cast<unsigned>(*first), static_cast<unsigned>(*second)};
}

// Links of /sys lead upwards by "../" and then down through its devices.
std::optional<std::string> MachineTree::target_of(const std::string& link) const {
  auto target = os::read_link(root_ + link);
  if (!target) return std::nullopt;
  const auto at = target->find("devices/");
  if (at == std::string::npos) return std::nullopt;
  return "/sys/" + target->substr(at);
}

PciDevice MachineTree::pci_device(const std::string& sys_folder) const {
  PciDevice device;
  std::string_view rest = sys_folder;
  while (!rest.empty()) {
    const std::string name(os::take_field(rest, '/'));
    if (name.starts_with("pci") && name.find(':') != std::string::npos) device.host_bridge = name;
    if (!is_pci_address(name)) continue;
    if (!device.address.empty()) device.ports.push_back(device.address);
    device.address = name;
  }
  return device;
}

std::vector<PciDevice> MachineTree::gpus(const std::string& vendor) const {
  std::vector<PciDevice> found;
  for (const std::string& name : names("/sys/bus/pci/devices")) {
    const std::string link = "/sys/bus/pci/devices/" + name;
    const auto folder = target_of(link);
    if (!folder || text(*folder + "/vendor") != vendor) continue;
    if (!text(*folder + "/class").value_or("").starts_with("0x03")) continue;
    found.push_back(pci_device(*folder));
  }
  return found;
}

BlockStack MachineTree::stack_of(std::string folder, int depth) const {
  if (has(folder + "/partition")) folder.resize(folder.rfind('/'));
  BlockStack stack;
  stack.name = os::base_name(folder);
  const auto device = pci_device(folder);
  if (!device.address.empty()) stack.controller = device;
  for (const std::string& name : names(folder + "/slaves")) {
    const auto below = target_of("/sys/class/block/" + name);
    if (below && depth < deepest_stack) stack.below.push_back(stack_of(*below, depth + 1));
  }
  stack.folder = std::move(folder);
  return stack;
}

StoragePlace MachineTree::place_of(const std::string& path) const {
  StoragePlace place;
  place.path = path;
  if (path.starts_with("/dev/")) {
    if (const auto folder = target_of("/sys/class/block/" + path.substr(5))) {
      place.filesystem = "block device";
      place.disk = stack_of(*folder, 0);
      return place;
    }
  }
  const std::string mountinfo = text("/proc/self/mountinfo").value_or("");
  const os::Mount* best = nullptr;
  const auto mounts = os::parse_mounts(mountinfo);
  for (const os::Mount& mount : mounts) {
    if (!os::contains_path(mount.mount_point, path)) continue;
    if (best == nullptr || mount.mount_point.size() >= best->mount_point.size()) best = &mount;
  }
  if (best == nullptr) return place;
  place.filesystem = best->filesystem;
  place.mount_point = best->mount_point;
  place.options = options_of(mountinfo, best->id);
  const auto folder = target_of("/sys/dev/block/" + std::to_string(best->device_major) + ":" +
                                std::to_string(best->device_minor));
  if (folder) place.disk = stack_of(*folder, 0);
  return place;
}

}  // namespace straightway::tools
