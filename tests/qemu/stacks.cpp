// XFS, overlay, md raid0, dm-linear and loop.

#include "stacks.hpp"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "guest.hpp"

namespace straightway::qemu {
namespace {

// The first 2 MiB of the raw drive, which are random.
void write_data(const Guest& guest, const std::string& path) {
  const auto bytes = plain_read(guest.raw(), 2 * mib, 0);
  std::ofstream(path, std::ios::binary).write(bytes.data(), 2 * mib);
  ::sync();
}

bool mounted(const char* type, const std::string& what, const char* where,
             const std::string& options = "") {
  ::mkdir(where, 0755);
  const bool good = ::mount(what.c_str(), where, type, 0, options.c_str()) == 0;
  check(good, std::string(type) + " was not mounted");
  return good;
}

void run_xfs_and_overlays(Guest& guest) {
  if (!mounted("xfs", guest.drive("xfs").node, "/xfs")) return;
  write_data(guest, "/xfs/file");
  guest.run_two_reads("XFS", "/xfs/file");
  for (const char* folder : {"/xfs/lower", "/xfs/upper", "/xfs/work", "/tmp/upper", "/tmp/work"}) {
    ::mkdir(folder, 0755);
  }
  const std::string lower = "lowerdir=/xfs/lower,";
  if (mounted("overlay", "o", "/over", lower + "upperdir=/xfs/upper,workdir=/xfs/work")) {
    write_data(guest, "/over/file");
    guest.run_two_reads("overlay on XFS", "/over/file");
    ::umount("/over");
  }
  if (mounted("overlay", "o", "/over", lower + "upperdir=/tmp/upper,workdir=/tmp/work")) {
    write_data(guest, "/over/file");
    // Its files have a device number of their own, which no mount shows.
    guest.run_refused("overlay on two file systems", "/over/file", Reason::no_block_device, 65536);
    ::umount("/over");
  }
  ::umount("/xfs");
}

}  // namespace

void run_stacks(Guest& guest) {
  load_modules();
  run_xfs_and_overlays(guest);
  const auto array = make_raid0({guest.drive("a").node, guest.drive("b").node});
  if (!array.empty()) {
    write_data(guest, array);
    guest.run_two_reads("md raid0", array);
  }
  for (const auto& path : {make_linear(guest.raw()), make_loop(guest.raw())}) {
    if (!path.empty()) guest.run_refused(path, path, Reason::no_peer_memory, -EREMOTEIO);
  }
}

}  // namespace straightway::qemu
