#include "cufile/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "os/system_text.hpp"

namespace straightway::cufile {
namespace {

// The class of a PCI device in its upper byte: 1 storage, 2 network, 3 display, 0x12 accelerator.
const char* kind_of(const std::string& pci_class) {
  if (pci_class.starts_with("0x0108")) return "nvme";
  if (pci_class.starts_with("0x02")) return "network";
  if (pci_class.starts_with("0x0302") || pci_class.starts_with("0x12")) return "gpu";
  return pci_class.starts_with("0x0300") ? "display" : nullptr;
}

std::string one_word(const std::string& path) {
  std::string text = os::read_text(path).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

std::string topology_text(const std::string& root) {
  std::vector<std::string> lines;
  std::error_code failed;
  const std::string folder = root + "/sys/bus/pci/devices";
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string device = at->path().string();
    const char* kind = kind_of(one_word(device + "/class"));
    if (kind == nullptr) continue;
    const std::string node = one_word(device + "/numa_node");
    lines.push_back(fmt::format("{} {} numa_node={}\n", at->path().filename().string(), kind,
                                node.empty() ? "-1" : node));
  }
  std::ranges::sort(lines);
  std::string text = "// Topology file for cuFile.\n";
  for (const std::string& line : lines) text += line;
  return text;
}

bool export_topology(const std::string& path) {
  std::ofstream file(path, std::ios::trunc);
  file << topology_text() << std::flush;
  return file.good();
}

}  // namespace straightway::cufile
