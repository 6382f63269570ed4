#pragma once
// A machine as its /proc, /sys, /dev, /boot and /etc show it: this one, or a copy of another's
// below a folder. Reads only; a link is taken as text, so that nothing outside the folder is
// followed.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace straightway::tools {

// What stands above a device on its way to the processor.
struct PciDevice {
  std::string address;             // "0000:41:00.0"
  std::string host_bridge;         // "pci0000:40"
  std::vector<std::string> ports;  // addresses of root port and switches, from the top
};

// A disk, or what stands in for one.
struct BlockStack {
  std::string name;               // "nvme0n1", "dm-0"
  std::string folder;             // in /sys
  std::vector<BlockStack> below;  // of device-mapper and md
  std::optional<PciDevice> controller;
};

// Where a file lies.
struct StoragePlace {
  std::string path;
  std::string filesystem;  // "block device" for one of /dev
  std::string mount_point;
  std::string options;  // those of the file system
  std::optional<BlockStack> disk;
};

class MachineTree {
 public:
  // root: "" for this machine.
  explicit MachineTree(std::string root) : root_(std::move(root)) {}

  const std::string& root() const { return root_; }
  bool is_here() const { return root_.empty(); }
  bool has(const std::string& path) const;
  // Without the newline at its end; nullopt: absent, or not for this user.
  std::optional<std::string> text(const std::string& path) const;
  // Whether a line of a large file contains all of this; nullopt: it cannot be read.
  std::optional<bool> has_line(const std::string& path, const std::string& wanted) const;
  // The path as that machine has it.
  std::string shown(const std::string& path) const {
    return path.starts_with(root_) ? path.substr(root_.size()) : path;
  }
  std::vector<std::string> names(const std::string& folder) const;  // sorted

  std::string kernel() const;
  // Major and minor version; 0.0 where it does not parse.
  std::pair<unsigned, unsigned> kernel_version() const;
  PciDevice pci_device(const std::string& sys_folder) const;
  // Display and 3D controllers of this vendor ("0x10de"), by address.
  std::vector<PciDevice> gpus(const std::string& vendor) const;
  // path: absolute.
  StoragePlace place_of(const std::string& path) const;

 private:
  std::optional<std::string> target_of(const std::string& link) const;
  BlockStack stack_of(std::string folder, int depth) const;

  std::string root_;
};

}  // namespace straightway::tools
