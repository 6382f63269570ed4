// straightway check: what is true of this machine and this file, and what each route lacks.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "arguments.hpp"
#include "commands.hpp"
#include "cufile_configuration.hpp"
#include "direct_ways.hpp"
#include "findings.hpp"
#include "gdscheck.hpp"
#include "os/facts.hpp"
#include "os/machine_facts.hpp"
#include "plan/planner.hpp"
#include "plan/units.hpp"

namespace straightway::tools {
namespace {

Verdict pass_if(bool condition) { return condition ? Verdict::pass : Verdict::lacking; }

Finding gpu_finding(const MachineFacts& machine) {
  Finding finding{pass_if(machine.cuda_devices > 0), "GPU", "", "cuInit of libcuda.so.1"};
  if (machine.cuda_devices == 0) {
    finding.fact = machine.cuda_why_not.empty() ? "the driver names none" : machine.cuda_why_not;
    return finding;
  }
  finding.fact =
      fmt::format("{} {}", machine.cuda_devices, machine.cuda_devices == 1 ? "device" : "devices");
  if (machine.cuda_simulated) {
    finding.verdict = Verdict::unknown;
    finding.fact += ", simulated";
  }
  return finding;
}

// Nothing is loaded to look: whether all its symbols are there shows only when it is used.
Finding vendor_finding(const MachineFacts& machine) {
  const std::string& path = machine.vendor_path;
  if (path.empty()) {
    return {Verdict::lacking, "vendor library", "no libcufile.so.0 but, perhaps, our own",
            "LD_LIBRARY_PATH, ld.so.cache, usual folders"};
  }
  return {Verdict::unknown, "vendor library", path + " is there; not loaded to look closer", path};
}

Section machine_section(const MachineFacts& machine) {
  Section section{"This machine", {}};
  auto& add = section.findings;
  add.push_back({Verdict::pass, "kernel", machine.kernel, "/proc/sys/kernel/osrelease"});
  add.push_back(
      {Verdict::pass, "CPUs", std::to_string(machine.cpus), "sched_getaffinity, cgroup quota"});
  add.push_back({Verdict::pass, "page", plan::format_bytes(machine.page_bytes), "sysconf"});
  add.push_back({pass_if(machine.uring), "io_uring",
                 machine.uring ? "answers" : machine.uring_why_not, "io_uring_setup"});
  add.push_back(gpu_finding(machine));
  add.push_back({pass_if(machine.nvfs_loaded), "nvidia-fs",
                 machine.nvfs_loaded ? "loaded" : "not loaded", "/proc/driver/nvidia-fs"});
  add.push_back(vendor_finding(machine));
  add.push_back({pass_if(machine.run_udev), "udev",
                 machine.run_udev ? "/run/udev is there" : "no /run/udev", "/run/udev"});
  if (machine.wsl) {
    add.push_back({Verdict::lacking, "WSL", "the vendor's library is not called here",
                   "/proc/sys/kernel/osrelease"});
  }
  return section;
}

// An open file or folder, closed at the end.
class Opened {
 public:
  explicit Opened(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)),
        code_(fd_ < 0 ? errno : 0) {}
  ~Opened() {
    if (fd_ >= 0) ::close(fd_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  int fd() const { return fd_; }
  int code() const { return code_; }
  bool is_folder() const {
    struct stat status;
    return ::fstat(fd_, &status) == 0 && S_ISDIR(status.st_mode);
  }

 private:
  int fd_;
  int code_;
};

Finding device_finding(const FileFacts& facts) {
  if (facts.device.empty()) {
    return {facts.is_network ? Verdict::lacking : Verdict::unknown, "device",
            facts.is_network ? "none here: the bytes come over a network"
                             : "no block device of its own",
            "/sys/dev/block"};
  }
  if (facts.device_driver.empty()) {
    return {Verdict::unknown, "device", facts.device + ", driver not known", "/sys/dev/block"};
  }
  return {Verdict::pass, "device", facts.device + " by " + facts.device_driver, "/sys/dev/block"};
}

Finding direct_finding(const FileFacts& facts) {
  if (facts.direct_offset_align_bytes == 0) {
    return {Verdict::lacking, "direct I/O", "not on " + facts.filesystem, "statx, O_DIRECT"};
  }
  return {Verdict::pass, "direct I/O",
          fmt::format("offsets by {}, memory by {} bytes", facts.direct_offset_align_bytes,
                      facts.direct_memory_align_bytes),
          "statx, O_DIRECT"};
}

Finding cache_finding(int fd, std::uint64_t size_bytes) {
  const os::Residency residency = os::read_residency(fd, 0, size_bytes);
  if (!residency.known) return {Verdict::unknown, "page cache", residency.why_unknown, ""};
  std::string fact = fmt::format("{} of {} resident", plan::format_bytes(residency.resident_bytes),
                                 plan::format_bytes(size_bytes));
  if (residency.dirty_bytes > 0) {
    fact += fmt::format(", {} not yet on the disk", plan::format_bytes(residency.dirty_bytes));
  }
  return {Verdict::pass, "page cache", fact, residency.witness};
}

// All that File::pin looks at, with nothing to pin.
Finding pin_finding(const File& file) {
  PinOptions nothing;
  nothing.ranges.emplace();
  const auto pin = file.pin(nothing);
  const char* witness = "statfs, /proc/self/pagemap, cuDeviceGetAttribute";
  if (!pin) return {Verdict::lacking, "pin", pin.error().why, witness};
  return {Verdict::pass, "pin", "its pages can be kept registered (File::pin)", witness};
}

Section file_section(const std::string& path, const FileFacts& facts) {
  Section section{path, {}};
  auto& add = section.findings;
  const bool known = facts.filesystem != "unknown";
  add.push_back({known ? Verdict::pass : Verdict::unknown, "file system",
                 facts.mount_point.empty()
                     ? facts.filesystem
                     : fmt::format("{} on {}", facts.filesystem, facts.mount_point),
                 "/proc/self/mountinfo, statfs"});
  add.push_back(device_finding(facts));
  return section;
}

std::string sentence_of(Reason reason, Route route, const Plan& plan) {
  return plan::sentence(reason, route, plan.file.get(), plan.machine.get(), plan.settings.get());
}

Finding route_finding(const Plan& plan, Route route) {
  Finding finding{Verdict::unknown, to_string(route), "not asked for by this plan", "plan"};
  for (std::uint8_t i = 0; i < plan.run_count; ++i) {
    if (plan.runs[i].route != route) continue;
    finding.verdict = Verdict::pass;
    finding.fact = sentence_of(plan.runs[i].reason, route, plan);
    return finding;
  }
  const Reason refused = plan.refused[index(route)];
  if (refused == Reason::none) return finding;
  const bool possible = refused == Reason::not_preferred || refused == Reason::policy_forbids;
  finding.verdict = possible ? Verdict::pass : Verdict::lacking;
  finding.fact = sentence_of(refused, route, plan);
  return finding;
}

Result<Section> route_section(const File& file, SpaceKind space, std::uint64_t size_bytes) {
  const bool host = space == SpaceKind::host;
  const auto plan = file.explain(Direction::read, space, host ? -1 : 0, size_bytes);
  if (!plan) return plan.error();
  Section section{host ? "Routes into host memory" : "Routes into cuda:0", {}};
  for (const Route route : all_routes) {
    const Reason refused = plan->refused[index(route)];
    // Routes into the other kind of memory have a section of their own.
    if (refused == Reason::space_is_host || refused == Reason::space_is_device) continue;
    section.findings.push_back(route_finding(*plan, route));
  }
  return section;
}

std::string absolute(const std::string& path) {
  std::error_code code;
  const auto found = std::filesystem::canonical(path, code);
  return code ? path : found.string();
}

// What there is to say of one path; a folder has no routes and no pages.
Result<void> add_file(const std::string& path, std::vector<Section>& sections, Looked& looked) {
  const Opened opened(path);
  if (opened.fd() < 0) return system_error(opened.code(), "open", path);
  looked.place = looked.tree.place_of(absolute(path));
  if (opened.is_folder()) {
    const auto facts = os::read_file_facts(opened.fd(), path);
    if (facts.direct_offset_align_bytes > 0) {  // a folder itself takes no direct I/O
      looked.direct_align_bytes = facts.direct_offset_align_bytes;
    }
    sections.push_back(file_section(path, facts));
    return {};
  }
  const auto file = File::open(path);
  if (!file) return file.error();
  const auto size = file->size();
  if (!size) return size.error();
  looked.direct_align_bytes = file->facts()->direct_offset_align_bytes;
  Section section = file_section(path, *file->facts());
  section.findings.push_back(direct_finding(*file->facts()));
  section.findings.push_back(cache_finding(file->descriptor(), *size));
  section.findings.push_back(pin_finding(*file));
  sections.push_back(std::move(section));
  if (*size == 0) return {};
  for (const SpaceKind space : {SpaceKind::cuda, SpaceKind::host}) {
    auto routes = route_section(*file, space, *size);
    if (!routes) return routes.error();
    sections.push_back(std::move(*routes));
  }
  return {};
}

struct Report {
  Looked looked;
  std::vector<Section> sections;
  bool direct = false;  // nothing is known to stand in the way of one direct way
  bool staged = false;
};

void add_direct_ways(Report& report) {
  for (const Route route : {Route::nvfs, Route::p2pdma}) {
    Section way = direct_way(route, report.looked);
    report.direct |= std::ranges::none_of(
        way.findings, [](const Finding& finding) { return finding.verdict == Verdict::lacking; });
    report.sections.push_back(std::move(way));
  }
  report.sections.push_back(configuration_section(report.looked.tree));
}

Result<Report> look(const CheckOptions& options) {
  const auto context = Context::process_default();
  if (!context) return context.error();
  const auto machine = (*context)->machine(true);
  if (!machine) return machine.error();
  Report report{{MachineTree(""), **machine, {}, {}, {}}, {machine_section(**machine)}};
  Looked& looked = report.looked;
  report.staged = (*machine)->cuda_devices > 0;
  looked.gpus = looked.tree.gpus("0x10de");
  if (!options.file.empty()) {
    if (auto added = add_file(options.file, report.sections, looked); !added) return added.error();
  }
  add_direct_ways(report);
  return report;
}

// Of another machine only what files show.
Result<Report> look_at_copy(const CheckOptions& options) {
  Report report{{MachineTree(options.tree), os::read_machine_facts(options.tree), {}, {}, {}}, {}};
  Looked& looked = report.looked;
  looked.gpus = looked.tree.gpus("0x10de");
  if (!options.file.empty()) looked.place = looked.tree.place_of(options.file);
  report.staged = looked.tree.has("/proc/driver/nvidia/version");
  add_direct_ways(report);
  return report;
}

int exit_code(const CheckOptions& options, const Report& report) {
  if (options.require == "direct") return report.direct ? 0 : 1;
  return options.require.empty() || report.staged ? 0 : 1;
}

}  // namespace

int run_check(const CheckOptions& options, Terminal& terminal) {
  const auto report = options.tree.empty() ? look(options) : look_at_copy(options);
  if (!report) return terminal.fail(report.error(), options.json);
  if (!options.format.empty()) {
    terminal.print(gdscheck_text(report->looked));
    return exit_code(options, *report);
  }
  if (options.json) {
    Json json = Json::array();
    for (const Section& section : report->sections) json.push_back(to_json(section));
    terminal.print_line(dump(json));
    return exit_code(options, *report);
  }
  for (const Section& section : report->sections) {
    if (&section != &report->sections.front()) terminal.print("\n");
    print(section, terminal);
  }
  if (options.file.empty()) {
    terminal.print("\nName a file to see what each route lacks for it: straightway check FILE\n");
  }
  return exit_code(options, *report);
}

}  // namespace straightway::tools
