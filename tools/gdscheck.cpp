#include "gdscheck.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <algorithm>

#include "cufile/environment.hpp"
#include "cufile/version.hpp"
#include "cufile_configuration.hpp"
#include "memory/cuda_driver.hpp"

namespace straightway::tools {
namespace {

using cufile::Key;
using Read = Result<cufile::Configuration>;

constexpr const char* oldest_module = "2.12";

bool all_pass(const std::vector<Finding>& findings) {
  return std::ranges::all_of(
      findings, [](const Finding& finding) { return finding.verdict == Verdict::pass; });
}

std::string banner(const char* title) {
  const std::string bar(std::string_view(title).size(), '=');
  return fmt::format(" {}\n {}\n {}\n", bar, title, bar);
}

cufile::Configuration::Environment environment_of(const MachineTree& tree) {
  return [here = tree.is_here()](const char* name) {
    return here ? cufile::read_variable(name) : std::nullopt;
  };
}

std::string architecture(const MachineTree& tree) {
  if (const auto found = tree.text("/proc/sys/kernel/arch")) return *found;
  utsname names{};
  return tree.is_here() && ::uname(&names) == 0 ? names.machine : "unknown";
}

std::string head_text(const MachineTree& tree) {
  const int version = cufile::answered_version(environment_of(tree), tree.root());
  std::string text =
      fmt::format(" GDS release version: {}.{}\n", version / 1000, version % 1000 / 10);
  std::string module = tree.text("/proc/driver/nvidia-fs/version").value_or("");
  module = module.substr(0, module.find('\n'));
  constexpr std::string_view label = "version: ";
  if (module.starts_with(label)) module.erase(0, label.size());
  if (!module.empty()) module = " nvidia_fs version:  " + module;
  return text + fmt::format("{} nvidia_fs minimum version: {}\n Platform: {}\n", module,
                            oldest_module, architecture(tree));
}

// The variables that are set.
std::string environment_text(const MachineTree& tree) {
  const auto environment = environment_of(tree);
  std::vector<const char*> names = {"CUFILE_ENV_PATH_JSON", "CUFILE_LOGFILE_PATH"};
  for (const cufile::KeyInfo& key : cufile::all_keys()) {
    if (key.variable != nullptr) names.push_back(key.variable);
  }
  std::string text = banner("ENVIRONMENT:");
  for (const char* name : names) {
    if (const auto value = environment(name)) text += fmt::format(" {} : {}\n", name, *value);
  }
  return text;
}

// What may carry the bytes of a file there: "p2pdma, nvfs, compat". `check` sees drives of this
// machine alone, so only NVMe may be more than the way through the CPU.
std::string modes(const Looked& looked, const Read& read, bool nvme) {
  if (!read) return "Unsupported";
  std::vector<const char*> ways;
  const auto passes = [&](Route route) { return all_pass(direct_way(route, looked).findings); };
  if (nvme && read->flag(Key::nvme_use_pci_p2pdma) && passes(Route::p2pdma)) {
    ways.push_back("p2pdma");
  }
  if (nvme && passes(Route::nvfs)) ways.push_back("nvfs");
  if (read->flag(Key::allow_compat_mode) || read->flag(Key::force_compat_mode)) {
    ways.push_back("compat");
  }
  return ways.empty() ? "Unsupported" : fmt::format("{}", fmt::join(ways, ", "));
}

std::string driver_text(const Looked& looked, const Read& read) {
  std::string text = banner("DRIVER CONFIGURATION:");
  for (const char* name :
       {"NVMe", "NVMeOF", "SCSI", "ScaleFlux CSD", "NVMesh", "DDN EXAScaler", "IBM Spectrum Scale",
        "NFS", "BeeGFS", "ScaTeFS", "VIRTIOFS", "WekaFS"}) {
    text +=
        fmt::format(" {:<18} : {}\n", name, modes(looked, read, std::string_view(name) == "NVMe"));
  }
  return text +
         " Userspace RDMA     : Unsupported\n"
         " --Mellanox PeerDirect : Disabled\n"
         " --rdma library        : Not Loaded (libcufile_rdma.so)\n"
         " --rdma devices        : Not configured\n"
         " --rdma_device_status  : Up: 0 Down: 0\n";
}

// A key as it is shown: its name there, and what stands between name and value.
struct ShownKey {
  Key key;
  const char* name = nullptr;  // null: its own
  const char* between = " : ";
};

constexpr ShownKey shown_keys[] = {
    {Key::use_pci_p2pdma},
    {Key::allow_compat_mode, "properties.use_compat_mode"},
    {Key::force_compat_mode},
    {Key::gds_rdma_write_support},
    {Key::use_poll_mode},
    {Key::poll_mode_max_size_kb},
    {Key::io_batchsize, "properties.max_batch_io_size"},
    {Key::max_batch_io_timeout_msecs},
    {Key::max_direct_io_size_kb},
    {Key::max_device_cache_size_kb},
    {Key::per_buffer_cache_size_kb},
    {Key::max_device_pinned_mem_size_kb},
    {Key::posix_pool_slab_size_kb},
    {Key::posix_pool_slab_count},
    {Key::gpu_bounce_slab_size_kb, "properties.gpu_bounce_buffer_slab_size_kb"},
    {Key::gpu_bounce_slab_count, "properties.gpu_bounce_buffer_slab_count"},
    {Key::rdma_load_balancing_policy, "properties.rdma_peer_affinity_policy"},
    {Key::rdma_dynamic_routing},
    {Key::posix_unaligned_writes},
    {Key::lustre_posix_gds_min_kb, nullptr, ": "},
    {Key::lustre_use_pci_p2pdma},
    {Key::beegfs_posix_gds_min_kb, nullptr, ": "},
    {Key::beegfs_use_pci_p2pdma},
    {Key::scatefs_posix_gds_min_kb, nullptr, ": "},
    {Key::scatefs_use_pci_p2pdma},
    {Key::weka_rdma_write_support, nullptr, ": "},
    {Key::nfs_use_pci_p2pdma},
    {Key::gpfs_gds_write_support, nullptr, ": "},
    {Key::gpfs_gds_async_support, nullptr, ": "},
    {Key::gpfs_use_pci_p2pdma},
    {Key::virtiofs_use_pci_p2pdma},
    {Key::profile_cufile_stats},
    {Key::api_check_aggressive},
    {Key::enable_static_routing},
    {Key::static_routing_filepath},
    {Key::max_io_threads},
    {Key::max_io_queue_depth},
    {Key::parallel_io},
    {Key::min_io_threshold_size_kb},
    {Key::max_request_parallelism},
    {Key::force_odirect_mode},
    {Key::prefer_iouring},
    {Key::raid_use_pci_p2pdma},
    {Key::nvme_use_pci_p2pdma},
    {Key::nvmeof_use_pci_p2pdma},
};

std::string value_text(const cufile::Configuration& config, Key key) {
  const cufile::KeyValue& value = config.get(key).value;
  if (key == Key::rdma_dynamic_routing) return std::get<bool>(value) ? "1" : "0";
  if (const auto* list = std::get_if<cufile::Numbers>(&value)) {
    return fmt::format("{}", fmt::join(*list, " "));
  }
  return cufile::to_string(value);
}

std::string configuration_text(const Read& read) {
  std::string text = banner("CUFILE CONFIGURATION:");
  if (!read) return text + " " + read.error().message() + "\n";
  for (const ShownKey& shown : shown_keys) {
    text += fmt::format(" {}{}{}\n",
                        shown.name != nullptr ? shown.name : cufile::info(shown.key).full_name(),
                        shown.between, value_text(*read, shown.key));
  }
  return text;
}

// "Model: NVIDIA L4" in the driver's own folder.
std::string model_of(const MachineTree& tree, const PciDevice& gpu) {
  const auto text = tree.text("/proc/driver/nvidia/gpus/" + gpu.address + "/information");
  const auto at = text ? text->find("Model:") : std::string::npos;
  if (at == std::string::npos) return gpu.address;
  const auto begin = text->find_first_not_of(" \t", at + 6);
  return begin == std::string::npos ? gpu.address
                                    : text->substr(begin, text->find('\n', begin) - begin);
}

// By the driver and the memory that the device shows, whatever else the ways need.
std::string support_of(const Looked& looked, const PciDevice& gpu) {
  Looked alone = looked;
  alone.gpus = {gpu};
  bool unknown = false;
  for (const Route route : {Route::nvfs, Route::p2pdma}) {
    std::vector<Finding> findings;
    add_gpu_findings(route, alone, findings);
    std::erase_if(findings, [](const Finding& finding) {
      return finding.subject != "driver" && finding.subject != "BAR1" &&
             finding.subject != "device pages";
    });
    if (all_pass(findings)) return "supports GDS";
    unknown |= std::ranges::none_of(
        findings, [](const Finding& finding) { return finding.verdict == Verdict::lacking; });
  }
  return unknown ? "may support GDS" : "does not support GDS";
}

bool iommu_is_on(const MachineTree& tree) { return !tree.names("/sys/class/iommu").empty(); }

std::string gpus_text(const Looked& looked) {
  std::string text = banner("GPU INFO:");
  for (std::size_t i = 0; i < looked.gpus.size(); ++i) {
    const PciDevice& gpu = looked.gpus[i];
    const std::uint64_t bytes = bar1_bytes(looked.tree, gpu).value_or(0);
    text += fmt::format(" GPU index {} {} bar:{} bar size (MiB):{} {}, IOMMU State: {}\n", i,
                        model_of(looked.tree, gpu), bytes == 0 ? "disabled" : "1",
                        bytes == 0 ? "N/A" : std::to_string(bytes >> 20), support_of(looked, gpu),
                        iommu_is_on(looked.tree) ? "Pass-through or Enabled" : "Disabled");
  }
  return text;
}

std::string kernel_modules_text(const Looked& looked) {
  std::vector<Finding> findings;
  add_gpu_findings(Route::nvfs, looked, findings);
  for (const Finding& finding : findings) {
    if (finding.subject != "GPU" && finding.subject != "driver") continue;
    if (finding.verdict != Verdict::pass) return "Unsupported(" + finding.fact + ")";
  }
  return "Supported(Nvidia Open Driver Installed)";
}

std::string cuda_version_text(const MachineTree& tree) {
  int version = 0;
  if (tree.is_here()) {
    const auto driver = memory::cuda::load_driver();
    if (driver && driver->driver_version(&version) != 0) version = 0;
  }
  return version == 0 ? "N/A" : std::to_string(version);
}

std::string platform_text(const Looked& looked) {
  const MachineTree& tree = looked.tree;
  std::string text = banner("PLATFORM INFO:");
  text += iommu_is_on(tree) ? " IOMMU: Pass-through or enabled\n"
                              " WARN: GDS is not guaranteed to work functionally or in a "
                              "performant way with iommu=on/pt\n"
                            : " IOMMU: disabled\n";
  text += fmt::format(" Nvidia Driver Info Status: {}\n", kernel_modules_text(looked));
  text += fmt::format(" Cuda Driver Version Installed:  {}\n", cuda_version_text(tree));
  text += fmt::format(" Platform: {}, Arch: {}(Linux {})\n",
                      tree.text("/sys/class/dmi/id/product_name").value_or("unknown"),
                      architecture(tree), tree.kernel());
  const bool direct = all_pass(direct_way(Route::nvfs, looked).findings) ||
                      all_pass(direct_way(Route::p2pdma, looked).findings);
  return text + (direct ? " Platform verification succeeded\n"
                        : " Platform verification failed: `straightway check` says what each "
                          "direct way lacks\n");
}

}  // namespace

std::string gdscheck_text(const Looked& looked) {
  const auto read = read_cufile_configuration(looked.tree);
  return head_text(looked.tree) + environment_text(looked.tree) + driver_text(looked, read) +
         configuration_text(read) + gpus_text(looked) + platform_text(looked);
}

}  // namespace straightway::tools
