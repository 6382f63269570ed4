// PID 1 of the virtual machine: moves bytes between its drives and the memory of a PCI device with
// Straightway, and prints for each case what the receipt says. Before and after each case it reads
// one block of the raw drive at an address that names the case: run.py finds those reads in QEMU's
// trace, and compares what lies between them with the receipt.

#include <fcntl.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "guest.hpp"

namespace straightway::qemu {
namespace {

constexpr const char* file = "/mnt/data.bin";

// All below one switch.
void run_all(const Drives& drives) {
  {
    Guest guest(drives, Context::create().value());
    run_reads(guest, file);
    run_crowds(guest, file);
    run_holes(guest);
    run_raw(guest);
    run_refusals(guest);
    run_program(guest, file);
    run_stacks(guest);
  }
  run_posix_and_the_lie(drives, file, 100);
  Guest guest(drives, Context::create().value(), 200);
  run_removal(guest, file);
}

PeerFacts facts_of(const Guest& guest) {
  return *guest.open(file).explain(Direction::read, {guest.memory(), mib}).value().peer;
}

// Drive and device at ports of their own: the host's bridge forwards.
void run_ports(const Drives& drives) {
  Guest guest(drives, Context::create().value());
  check(facts_of(guest).bridge == PeerBridge::host_bridge, "not seen as separate ports");
  guest.run_two_reads("ext4 through the host's bridge", file);
  guest.run_two_reads("raw drive through the host's bridge", guest.raw());
}

// The same, on a host whose bridge the kernel does not trust to forward.
void run_unreachable(const Drives& drives) {
  Guest guest(drives, Context::create().value());
  guest.run("unreachable, auto", [&] { return guest.read(file, mib, 0, 0); });
  check(facts_of(guest).trial_code == EINVAL, "the trial did not end with EINVAL");
  guest.run_refused("unreachable", file, Reason::peer_refused, -EINVAL);
}

// An IOMMU that lets no transfer between devices through, and drives that do not notice: they say
// that the bytes were moved, and none were.
void run_swallowed(const Drives& drives) {
  Guest guest(drives, Context::create().value());
  fill(guest.memory(), 65536, poison);
  check(guest.bare_read(file, 65536) == 65536, "the drive noticed the fault");
  const auto found = look(guest.memory(), 8);
  check(found == std::vector<char>{'\xAD', '\xDE', '\xAD', '\xDE', '\xAD', '\xDE', '\xAD', '\xDE'},
        "this emulator delivers the bytes: nothing was tested");
  guest.run("swallowed, auto", [&] { return guest.read(file, mib, 0, 0); }, "TRIAL");
  check(facts_of(guest).read_trial == PeerTrial::data_lost, "the trial noticed nothing");
  guest.run_refused("swallowed", file, Reason::peer_data_lost, 65536);
}

void run_scenario(const std::string& scenario) {
  const auto wanted = std::strtoul(std::getenv("drives"), nullptr, 10);
  const auto drives = find_drives(wanted);
  if (drives.size() < wanted) return check(false, "not all drives came up");
  std::string range;
  std::ifstream resource("/sys/bus/pci/devices/" + drives.at("cmb").pci + "/resource");
  for (int bar = 0; bar <= 2; ++bar) std::getline(resource, range);
  std::printf("MEMORY %s\n", range.c_str());
  ::mkdir("/mnt", 0755);
  const auto disk = drives.at("ext").node;
  check(::mount(disk.c_str(), "/mnt", "ext4", 0, "") == 0, "ext4 was not mounted");
  if (scenario == "switch") run_all(drives);
  if (scenario == "ports") run_ports(drives);
  if (scenario == "unreachable") run_unreachable(drives);
  if (scenario == "swallowed") run_swallowed(drives);
  ::umount("/mnt");
}

void mount_all() {
  for (const char* folder : {"/proc", "/sys", "/dev", "/tmp", "/run"}) ::mkdir(folder, 0755);
  ::mount("proc", "/proc", "proc", 0, "");
  ::mount("sysfs", "/sys", "sysfs", 0, "");
  ::mount("devtmpfs", "/dev", "devtmpfs", 0, "");
  ::mount("tmpfs", "/tmp", "tmpfs", 0, "");
  const int console = ::open("/dev/console", O_RDWR);
  for (const int fd : {0, 1, 2}) ::dup2(console, fd);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
}

}  // namespace
}  // namespace straightway::qemu

int main() {
  using namespace straightway::qemu;
  mount_all();
  utsname name{};
  ::uname(&name);
  std::printf("\nKERNEL %s\n", name.release);
  try {
    run_scenario(std::getenv("scenario"));  // the kernel hands on the words that it does not know
  } catch (const std::exception& error) {
    check(false, error.what());
  }
  std::printf("DONE %d failures\n", failures());
  std::fflush(stdout);
  ::sync();
  ::usleep(100000);
  // QEMU's isa-debug-exit: its status is 1 for 0 and 3 for 1.
  if (::iopl(3) == 0) outb(failures() == 0 ? 0 : 1, 0xf4);
  ::reboot(RB_POWER_OFF);
  for (;;) ::pause();
}
