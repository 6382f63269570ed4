// The software that each direct way needs, and the way as a whole.

#include "direct_ways.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "cufile/version.hpp"
#include "cufile_configuration.hpp"
#include "os/machine_facts.hpp"
#include "os/nvfs_stats.hpp"

namespace straightway::tools {
namespace {

// The kernel whose P2PDMA mapping is broken: a drive may be handed the address 0 (fixed in 6.17).
constexpr std::pair<unsigned, unsigned> broken_kernel = {6, 16};
constexpr std::pair<unsigned, unsigned> first_kernel = {6, 2};
constexpr int first_library = 1080;
constexpr int first_library_with_p2pdma = 1130;

Finding kernel_finding(const MachineTree& tree) {
  Finding finding{Verdict::pass, "kernel", tree.kernel(), "/proc/sys/kernel/osrelease"};
  const auto version = tree.kernel_version();
  if (version == std::pair{0U, 0U}) {
    finding.verdict = Verdict::unknown;
    finding.fact = "its version cannot be read";
  } else if (version < first_kernel) {
    finding.verdict = Verdict::lacking;
    finding.fact += " is older than 6.2, the first that lets O_DIRECT into device memory";
    finding.fix = "boot Linux 6.17 or newer";
  } else if (version == broken_kernel) {
    finding.verdict = Verdict::lacking;
    finding.fact += " may tell a drive to write to address 0";
    finding.fix = "boot Linux 6.17 or newer; nothing is tried on 6.16";
  }
  return finding;
}

// Names without addresses are there for every user.
Finding symbols_finding(const MachineTree& tree) {
  const std::string config = "/boot/config-" + tree.kernel();
  if (const auto on = tree.has_line(config, "CONFIG_PCI_P2PDMA=y")) {
    if (*on) return {Verdict::pass, "kernel option", "CONFIG_PCI_P2PDMA=y", config};
    return {Verdict::lacking, "kernel option", "CONFIG_PCI_P2PDMA is not set", config,
            "boot a kernel that is built with CONFIG_PCI_P2PDMA"};
  }
  const std::string symbols = "/proc/kallsyms";
  const auto there = tree.has_line(symbols, "pci_p2pdma_add_resource");
  if (!there) {
    return {Verdict::unknown, "kernel option", "neither its configuration nor its symbols are here",
            config + ", " + symbols};
  }
  if (*there) return {Verdict::pass, "kernel option", "pci_p2pdma_add_resource is there", symbols};
  return {Verdict::lacking, "kernel option", "no pci_p2pdma_add_resource in the kernel", symbols,
          "boot a kernel that is built with CONFIG_PCI_P2PDMA"};
}

Finding module_finding(const MachineTree& tree) {
  const std::string source = "/proc/driver/nvidia-fs/version";
  const auto version = tree.text(source);
  if (!version) {
    return {Verdict::lacking, "nvidia-fs", "the module is not loaded", source,
            "install nvidia-fs (package nvidia-gds) for this kernel, then: modprobe nvidia-fs"};
  }
  if (version->find("2.25.6") != std::string::npos) {
    return {Verdict::lacking, "nvidia-fs", *version + " is known to be broken", source,
            "install nvidia-fs 2.25.7 or newer"};
  }
  return {Verdict::pass, "nvidia-fs", *version, source};
}

Finding nodes_finding(const MachineTree& tree) {
  std::size_t count = 0;
  std::string denied;
  for (const std::string& name : tree.names("/dev")) {
    if (!name.starts_with("nvidia-fs")) continue;
    ++count;
    if (tree.is_here() && ::access(("/dev/" + name).c_str(), R_OK | W_OK) != 0) denied = name;
  }
  if (count == 0) {
    return {Verdict::lacking, "device nodes", "no /dev/nvidia-fs*", "/dev",
            "load nvidia-fs; in a container, pass the nodes /dev/nvidia-fs* in"};
  }
  if (!denied.empty()) {
    return {Verdict::lacking, "device nodes", "/dev/" + denied + " is not for this user", "/dev",
            "give this user read and write access to /dev/nvidia-fs*"};
  }
  return {Verdict::pass, "device nodes", fmt::format("{} of /dev/nvidia-fs*", count), "/dev"};
}

Finding hooked_finding(const MachineTree& tree) {
  const std::string source = "/proc/driver/nvidia-fs/modules";
  const auto hooked = tree.has_line(source, "nvme");
  if (!hooked) return {Verdict::unknown, "NVMe driver", "nvidia-fs does not say", source};
  if (*hooked) return {Verdict::pass, "NVMe driver", "registered with nvidia-fs", source};
  return {Verdict::lacking, "NVMe driver", "not registered with nvidia-fs", source,
          "load an NVMe driver with nvidia-fs support, and nvidia-fs after it"};
}

// Where reads and writes are counted, that is the evidence for what went this way.
Finding counters_finding(const MachineTree& tree) {
  const std::string source = "/proc/driver/nvidia-fs/stats";
  const auto stats = os::read_nvfs_stats(tree.root());
  const std::string fix = "modprobe nvidia-fs rw_stats_enabled=1";
  if (!stats) return {Verdict::unknown, "counters", "nvidia-fs does not show them", source, fix};
  if (stats->counted) return {Verdict::pass, "counters", "reads and writes are counted", source};
  return {Verdict::unknown, "counters", "not counted, so that transfers stay claims", source, fix};
}

// Nothing is loaded to look.
Finding library_finding(Route route, const Looked& looked) {
  const MachineTree& tree = looked.tree;
  const auto path =
      tree.is_here() ? looked.machine.vendor_path : os::find_vendor_library("", tree.root());
  if (path.empty()) {
    return {Verdict::lacking, "vendor library", "no libcufile.so.0 of the vendor",
            "STRAIGHTWAY_VENDOR_LIBRARY, LD_LIBRARY_PATH, ld.so.cache, usual folders",
            "install the vendor's libcufile (package libcufile)"};
  }
  const auto source = path.substr(tree.root().size());
  const int version = cufile::library_version(path);
  if (version == 0) return {Verdict::pass, "vendor library", "libcufile.so.0 is there", source};
  const auto fact = fmt::format("libcufile {}.{}", version / 1000, version % 1000 / 10);
  const bool p2pdma = route == Route::p2pdma;
  if (version < (p2pdma ? first_library_with_p2pdma : first_library)) {
    return {Verdict::lacking, "vendor library", fact + " is too old", source,
            fmt::format("install version {} or newer of the vendor's libcufile",
                        p2pdma ? "1.13" : "1.8")};
  }
  return {Verdict::pass, "vendor library", fact, source};
}

Finding configuration_finding(Route route, const MachineTree& tree) {
  const auto read = read_cufile_configuration(tree);
  const std::string found = read ? read->file() : read.error().path;
  const std::string source = found.empty() ? "/etc/cufile.json" : tree.shown(found);
  const std::string subject = "cufile.json";
  if (!read) return {Verdict::lacking, subject, read.error().why, source, "correct the file"};
  if (read->flag(cufile::Key::force_compat_mode)) {
    return {Verdict::lacking, subject, "properties.force_compat_mode forbids every direct way",
            source, "set properties.force_compat_mode to false"};
  }
  if (route == Route::p2pdma && !read->flag(cufile::Key::use_pci_p2pdma)) {
    const std::string off = found.empty() ? "absent, and use_pci_p2pdma is off without it"
                                          : "properties.use_pci_p2pdma is off";
    const std::string fix = "set properties.use_pci_p2pdma and block.nvme.use_pci_p2pdma to true";
    const bool nvfs = tree.has("/proc/driver/nvidia-fs") && tree.has("/dev/nvidia-fs0");
    if (nvfs) return {Verdict::lacking, subject, off, source, fix};
    return {Verdict::pass, subject,
            off + "; without nvidia-fs straightway switches it on, for its own calls", source};
  }
  return {Verdict::pass, subject,
          found.empty() ? "absent: nothing forbids it" : "nothing in it forbids this way", source};
}

Finding udev_finding(const MachineTree& tree) {
  if (tree.has("/run/udev")) return {Verdict::pass, "udev", "/run/udev is there", "/run/udev"};
  return {Verdict::lacking, "udev", "no /run/udev, which the vendor's library asks for",
          "/run/udev", "in a container, mount it: -v /run/udev:/run/udev:ro"};
}

Finding build_finding(Route route, const MachineFacts& machine) {
  if ((machine.routes_built >> index(route) & 1U) != 0) {
    return {Verdict::pass, "straightway", "this build has a transport for it", "build"};
  }
  return {Verdict::lacking, "straightway", "this build has no transport for it", "build",
          "use a version of straightway that has one"};
}

void add_software(Route route, const Looked& looked, std::vector<Finding>& add) {
  const MachineTree& tree = looked.tree;
  if (looked.machine.wsl) {
    add.push_back({Verdict::lacking, "WSL", "a Windows machine keeps the PCI bus to itself",
                   "/proc/sys/kernel/osrelease", "boot Linux itself"});
  }
  if (route == Route::p2pdma) {
    add.push_back(kernel_finding(tree));
    add.push_back(symbols_finding(tree));
  } else {
    add.push_back(module_finding(tree));
    add.push_back(nodes_finding(tree));
    add.push_back(hooked_finding(tree));
    if (tree.has("/proc/driver/nvidia-fs")) add.push_back(counters_finding(tree));
  }
  add.push_back(library_finding(route, looked));
  add.push_back(configuration_finding(route, tree));
  add.push_back(udev_finding(tree));
}

}  // namespace

Section direct_way(Route route, const Looked& looked) {
  Section section{fmt::format("Direct way {}", to_string(route)), {}};
  auto& add = section.findings;
  add.push_back(build_finding(route, looked.machine));
  add_software(route, looked, add);
  add_gpu_findings(route, looked, add);
  if (looked.place) {
    add_storage_findings(route, looked, add);
    add_path_findings(looked, add);
  }
  const auto count = [&](Verdict verdict) {
    return std::ranges::count(add, verdict, &Finding::verdict);
  };
  section.title += fmt::format(": {} lacking, {} unknown of {}", count(Verdict::lacking),
                               count(Verdict::unknown), add.size());
  return section;
}

}  // namespace straightway::tools
