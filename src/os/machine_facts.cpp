// What is true of this machine.

#include "os/machine_facts.hpp"

#include <dirent.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <memory>

#include "os/facts.hpp"
#include "os/nvfs_stats.hpp"
#include "os/system_text.hpp"

namespace straightway::os {
namespace {

std::uint32_t affinity_cpus() {
  for (std::size_t most = 1024; most <= 65536; most *= 2) {
    cpu_set_t* set = CPU_ALLOC(most);
    if (set == nullptr) break;
    const std::size_t size_bytes = CPU_ALLOC_SIZE(most);
    const bool fits = ::sched_getaffinity(0, size_bytes, set) == 0;
    const int count = fits ? CPU_COUNT_S(size_bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return static_cast<std::uint32_t>(count);
    if (!fits && errno != EINVAL) break;
  }
  return static_cast<std::uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

void tighten(std::optional<std::uint32_t>& least, std::uint64_t quota, std::uint64_t period) {
  if (period == 0 || quota == 0) return;
  const std::uint64_t cpus = quota / period + (quota % period != 0 ? 1 : 0);
  const auto bounded = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(cpus, std::numeric_limits<std::uint32_t>::max()));
  least = least ? std::min(*least, bounded) : bounded;
}

// cpu.max is "200000 100000" or "max 100000".
void read_v2(std::optional<std::uint32_t>& least, const std::string& group) {
  const auto text = read_text(group + "/cpu.max", 128);
  if (!text) return;
  std::string_view rest = *text;
  const auto quota = to_number(take_field(rest, ' '));
  const auto period = to_number(rest);
  if (quota && period) tighten(least, *quota, *period);
}

// cpu.cfs_quota_us is -1 where there is no limit, which is no number to read_number.
void read_v1(std::optional<std::uint32_t>& least, const std::string& group) {
  const auto quota = read_number(group + "/cpu.cfs_quota_us");
  const auto period = read_number(group + "/cpu.cfs_period_us");
  if (quota && period) tighten(least, *quota, *period);
}

// Of a group and all above it. A container often sees its own group as the root of the tree, so
// folders that are not there are passed over.
template <class Read>
void walk_up(std::optional<std::uint32_t>& least, const std::string& tree, std::string group,
             const Read& read) {
  while (true) {
    read(least, tree + group);
    if (group.empty()) return;
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

bool lists_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    if (take_field(controllers, ',') == "cpu") return true;
  }
  return false;
}

std::string uname_release() {
  struct utsname name;
  return ::uname(&name) == 0 ? name.release : "";
}

std::string kernel_release(const std::string& root) {
  auto release = read_text(root + "/proc/sys/kernel/osrelease", 256);
  if (!release || release->empty()) return uname_release();
  while (!release->empty() && release->back() == '\n') release->pop_back();
  return *release;
}

// "5.15.153.1-microsoft-standard-WSL2"; WSL 1 writes "Microsoft".
bool is_wsl(std::string release) {
  std::ranges::transform(release, release.begin(), [](unsigned char c) { return std::tolower(c); });
  return release.find("microsoft") != std::string::npos;
}

// Asks for the smallest ring and lets it go at once.
void probe_uring(MachineFacts& facts) {
  struct io_uring_params parameters{};
  const long fd = ::syscall(SYS_io_uring_setup, 1U, &parameters);
  if (fd >= 0) {
    facts.uring = true;
    ::close(static_cast<int>(fd));
    return;
  }
  facts.uring_why_not = "io_uring_setup: " + errno_text(errno);
}

std::string vendor_path(const std::string& wanted, const std::string& root) {
  if (wanted == "none") return "";
  if (!wanted.empty()) return is_vendor_library(wanted) ? wanted : "";
  // secure_getenv: a set-user-ID program does not let its caller choose where to look.
  const char* library_path = ::secure_getenv("LD_LIBRARY_PATH");
  return find_vendor_library(library_path == nullptr ? "" : library_path, root);
}

// Its list of symbols says it too, and takes a tenth of a second to read.
bool may_publish_pages(const std::string& root, const std::string& release) {
  const auto config = read_text(root + "/boot/config-" + release, 2 << 20);
  return !config || config->find("CONFIG_PCI_P2PDMA=y") != std::string::npos;
}

}  // namespace

bool has_gpu_pages(const std::string& root, const std::string& release) {
  const std::string devices = root + "/sys/bus/pci/devices";
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(devices.c_str()), &::closedir);
  while (const dirent* entry = open ? ::readdir(open.get()) : nullptr) {
    if (entry->d_name[0] == '.') continue;
    const std::string device = devices + "/" + entry->d_name;
    if (read_number(device + "/p2pmem/size").value_or(0) == 0) continue;
    if (!read_text(device + "/vendor", 16).value_or("").starts_with("0x10de")) continue;
    return may_publish_pages(root, release);
  }
  return false;
}

std::optional<std::uint32_t> quota_cpus(const std::string& root) {
  std::optional<std::uint32_t> least;
  const auto groups = read_text(root + "/proc/self/cgroup").value_or("");
  std::string_view rest = groups;
  const std::string tree = root + "/sys/fs/cgroup";
  while (!rest.empty()) {
    std::string_view line = take_field(rest, '\n');
    const bool unified = take_field(line, ':') == "0";
    const auto controllers = take_field(line, ':');
    const std::string group(line == "/" ? "" : line);
    if (unified && controllers.empty()) {
      walk_up(least, tree, group, read_v2);
      walk_up(least, tree + "/unified", group, read_v2);
    } else if (lists_cpu(controllers)) {
      walk_up(least, tree + "/" + std::string(controllers), group, read_v1);
      if (controllers != "cpu") walk_up(least, tree + "/cpu", group, read_v1);
    }
  }
  return least;
}

UsableCpus usable_cpus(const std::string& root) {
  const auto cpus = affinity_cpus();
  const auto quota = quota_cpus(root);
  return {std::max(1U, std::min(cpus, quota.value_or(cpus))), quota.value_or(0)};
}

MachineFacts read_machine_facts(const std::string& root, const std::string& vendor_library) {
  MachineFacts facts;
  facts.page_bytes = static_cast<std::uint32_t>(::sysconf(_SC_PAGESIZE));
  const auto cpus = usable_cpus(root);
  facts.cpus = cpus.count;
  facts.quota_cpus = cpus.quota;
  facts.nvfs_loaded = exists(root + "/proc/driver/nvidia-fs");
  if (facts.nvfs_loaded) {
    facts.nvfs_version = nvfs_version(root);
    facts.nvfs_nodes = ::access((root + "/dev/nvidia-fs0").c_str(), R_OK | W_OK) == 0;
  }
  facts.run_udev = is_directory(root + "/run/udev");
  facts.kernel = kernel_release(root);
  facts.wsl = is_wsl(facts.kernel);
  facts.vendor_path = vendor_path(vendor_library, root);
  facts.vendor_library = !facts.vendor_path.empty();
  facts.routes_built |= 1U << index(Route::p2pdma);
  probe_uring(facts);
  return facts;
}

}  // namespace straightway::os
