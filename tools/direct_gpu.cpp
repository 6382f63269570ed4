// The GPU's side of a direct way: its driver, the memory that it shows, and the road to the drive.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "direct_ways.hpp"
#include "os/system_text.hpp"
#include "plan/units.hpp"

namespace straightway::tools {
namespace {

constexpr const char* driver_source = "/proc/driver/nvidia/version";
// Later kernels count pages of device memory in another way, which this branch does not know.
constexpr std::uint64_t stale_branch = 580;
constexpr std::pair<unsigned, unsigned> stale_from_kernel = {6, 15};
constexpr std::uint64_t first_p2pdma_branch = 565;

std::string folder_of(const PciDevice& device) { return "/sys/bus/pci/devices/" + device.address; }

Finding gpu_finding(const Looked& looked) {
  const std::string source = "/sys/bus/pci/devices";
  if (!looked.gpus.empty()) {
    std::string names;
    for (const PciDevice& gpu : looked.gpus) names += (names.empty() ? "" : ", ") + gpu.address;
    return {Verdict::pass, "GPU", names, source};
  }
  if (!looked.tree.gpus("0x1002").empty()) {
    return {Verdict::lacking, "GPU",
            "one of AMD, whose direct path needs its own driver and library", source,
            "none yet: read into host memory and let ROCm copy"};
  }
  return {Verdict::lacking, "GPU", "none of NVIDIA on the PCI bus", source,
          "run on a machine with a GPU of NVIDIA; in a virtual machine, pass one through"};
}

// "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build"
std::uint64_t branch_of(std::string_view text) {
  while (!text.empty()) {
    const auto word = os::take_field(text, ' ');
    const auto number = os::to_number(word);
    if (number && *number >= 300 && word.find('.') != std::string_view::npos) return *number;
  }
  return 0;
}

Finding driver_finding(Route route, const Looked& looked) {
  const auto whole = looked.tree.text(driver_source);
  if (!whole) {
    return {Verdict::lacking, "driver", "the vendor's driver is not loaded", driver_source,
            "install the vendor's open kernel modules, 595 or newer"};
  }
  const std::string line = whole->substr(0, whole->find('\n'));
  const bool open = line.find("Open Kernel Module") != std::string::npos;
  const auto branch = branch_of(line);
  const std::string fact =
      fmt::format("{} kernel modules, branch {}", open ? "open" : "closed", branch);
  if (!open) {
    return {Verdict::lacking, "driver", fact, driver_source,
            "install the open kernel modules of the driver"};
  }
  if (route != Route::p2pdma) return {Verdict::pass, "driver", fact, driver_source};
  if (branch < first_p2pdma_branch) {
    return {Verdict::lacking, "driver", fact + ", before 565", driver_source,
            "install driver 595 or newer"};
  }
  if (branch == stale_branch && looked.tree.kernel_version() >= stale_from_kernel) {
    return {Verdict::lacking, "driver", fact + " fails on Linux 6.15 and newer", driver_source,
            "install driver 595 or newer"};
  }
  return {Verdict::pass, "driver", fact, driver_source};
}

Finding bar_finding(const MachineTree& tree, const PciDevice& gpu) {
  const std::string source = folder_of(gpu) + "/resource";
  const auto bytes = bar1_bytes(tree, gpu);
  if (!bytes) return {Verdict::unknown, "BAR1", "cannot be read", source};
  if (*bytes == 0) {
    return {Verdict::lacking, "BAR1", gpu.address + " has none", source,
            "switch on resizable BAR and above-4G decoding in the firmware"};
  }
  const std::string fact = gpu.address + " shows " + plan::format_bytes(*bytes);
  if (*bytes <= (std::uint64_t{256} << 20)) {
    return {Verdict::lacking, "BAR1", fact + ", less than a transfer of many pieces needs", source,
            "switch on resizable BAR and above-4G decoding in the firmware"};
  }
  return {Verdict::pass, "BAR1", fact, source};
}

Finding published_finding(const MachineTree& tree, const PciDevice& gpu) {
  const std::string source = folder_of(gpu) + "/p2pmem/size";
  const auto size = tree.text(source);
  const auto bytes = size ? os::to_number(*size) : std::nullopt;
  if (bytes && *bytes > 0) {
    return {Verdict::pass, "device pages", plan::format_bytes(*bytes) + " published", source};
  }
  return {Verdict::lacking, "device pages", "the driver publishes none of " + gpu.address, source,
          "load nvidia with NVreg_RegistryDwords=\"RMForceStaticBar1=1;RmForceDisableIomapWC=1;\""};
}

bool boots_with(const MachineTree& tree, std::string_view word) {
  const std::string line = " " + tree.text("/proc/cmdline").value_or("") + " ";
  return line.find(" " + std::string(word) + " ") != std::string::npos;
}

Finding iommu_finding(const MachineTree& tree, const PciDevice& gpu) {
  if (tree.names("/sys/class/iommu").empty()) {
    return {Verdict::pass, "IOMMU", "off", "/sys/class/iommu"};
  }
  const std::string source = folder_of(gpu) + "/iommu_group/type";
  const auto type = tree.text(source);
  const std::string fix = "boot with iommu=pt, or switch the IOMMU off in the firmware";
  if (!type) {
    if (boots_with(tree, "iommu=pt")) {
      return {Verdict::pass, "IOMMU", "passes through (iommu=pt)", "/proc/cmdline"};
    }
    return {Verdict::unknown, "IOMMU", "on; whether it translates for the GPU is not to be seen",
            source, fix};
  }
  if (*type == "identity") return {Verdict::pass, "IOMMU", "passes through", source};
  return {Verdict::lacking, "IOMMU", "translates for the GPU (" + *type + ")", source, fix};
}

Finding acs_finding(const MachineTree& tree) {
  const std::string source = "/proc/driver/nvidia-fs/bridges";
  const auto bridges = tree.text(source);
  const std::string fix = "switch ACS off on these bridges: setpci, or in the firmware";
  if (!bridges) {
    return {Verdict::unknown, "ACS", "only root can read the bridges' settings", "lspci -vvv", fix};
  }
  if (bridges->empty()) return {Verdict::pass, "ACS", "off on every bridge", source};
  std::string shown = *bridges;
  std::ranges::replace(shown, '\n', ' ');
  return {Verdict::lacking, "ACS", "sends peer traffic upwards at " + shown, source, fix};
}

const BlockStack* drive_of(const BlockStack& stack) {
  if (stack.controller) return &stack;
  for (const BlockStack& below : stack.below) {
    if (const BlockStack* drive = drive_of(below)) return drive;
  }
  return nullptr;
}

// How many bridges both have above them.
std::size_t shared_ports(const PciDevice& a, const PciDevice& b) {
  const auto ends = std::ranges::mismatch(a.ports, b.ports);
  return a.host_bridge == b.host_bridge ? static_cast<std::size_t>(ends.in1 - a.ports.begin()) : 0;
}

Finding topology_finding(const Looked& looked, const PciDevice& drive) {
  const auto nearest = std::ranges::max_element(looked.gpus, {}, [&](const PciDevice& gpu) {
    return shared_ports(gpu, drive) * 2 + (gpu.host_bridge == drive.host_bridge ? 1 : 0);
  });
  const std::string pair = drive.address + " and " + nearest->address;
  const std::string source = "/sys/bus/pci/devices";
  const auto shared = shared_ports(*nearest, drive);
  const std::string fix = "move the drive or the GPU below the same PCIe switch";
  if (shared > 0) {
    return {Verdict::pass, "topology",
            fmt::format("{} lie below one switch, {}", pair, drive.ports[shared - 1]), source};
  }
  if (nearest->host_bridge == drive.host_bridge) {
    return {Verdict::unknown, "topology",
            pair + " meet in the host bridge only, which not every processor lets peers through",
            source, fix};
  }
  return {Verdict::lacking, "topology", pair + " hang on different host bridges", source, fix};
}

// "32.0 GT/s PCIe" x "16"
Finding link_finding(const MachineTree& tree, const PciDevice& device, const char* what) {
  const std::string folder = folder_of(device);
  const auto read = [&](const char* name) { return tree.text(folder + "/" + name); };
  const auto speed = read("current_link_speed");
  const auto width = read("current_link_width");
  const std::string subject = std::string(what) + " link";
  const std::string source = folder + "/current_link_*";
  if (!speed || !width) return {Verdict::unknown, subject, "cannot be read", source};
  const std::string fact = *speed + " x" + *width;
  const auto most =
      read("max_link_speed").value_or(*speed) + " x" + read("max_link_width").value_or(*width);
  if (fact == most) return {Verdict::pass, subject, fact, source};
  return {Verdict::unknown, subject, fact + " now, " + most + " at most; idle devices slow down",
          source};
}

}  // namespace

// BAR1 is resource 1: "0x start 0x end 0x flags".
std::optional<std::uint64_t> bar1_bytes(const MachineTree& tree, const PciDevice& gpu) {
  const auto text = tree.text(folder_of(gpu) + "/resource");
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  os::take_field(rest, '\n');
  const std::string line(os::take_field(rest, '\n'));
  char* after = nullptr;
  const auto start = std::strtoull(line.c_str(), &after, 16);
  const auto end = std::strtoull(after, nullptr, 16);
  return end > start ? end - start + 1 : 0;
}

void add_gpu_findings(Route route, const Looked& looked, std::vector<Finding>& add) {
  add.push_back(gpu_finding(looked));
  if (looked.gpus.empty()) return;
  add.push_back(driver_finding(route, looked));
  for (const PciDevice& gpu : looked.gpus) {
    add.push_back(bar_finding(looked.tree, gpu));
    if (route == Route::p2pdma) add.push_back(published_finding(looked.tree, gpu));
    add.push_back(iommu_finding(looked.tree, gpu));
    add.push_back(link_finding(looked.tree, gpu, "GPU"));
  }
  add.push_back(acs_finding(looked.tree));
}

void add_path_findings(const Looked& looked, std::vector<Finding>& add) {
  if (looked.gpus.empty() || !looked.place->disk) return;
  const BlockStack* drive = drive_of(*looked.place->disk);
  if (drive == nullptr) return;
  add.push_back(topology_finding(looked, *drive->controller));
  add.push_back(link_finding(looked.tree, *drive->controller, "drive"));
}

}  // namespace straightway::tools
