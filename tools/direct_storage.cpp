// The file's side of a direct way: its file system and every layer down to the drive.

#include <fmt/format.h>

#include <algorithm>

#include "direct_ways.hpp"
#include "os/mounts.hpp"

namespace straightway::tools {
namespace {

// Where md and multipath hand device memory on: measured not on 6.18, measured on 7.3.
constexpr std::pair<unsigned, unsigned> last_without_stacking = {6, 18};
constexpr std::pair<unsigned, unsigned> first_with_stacking = {7, 3};

constexpr const char* move_file = "put the file on ext4 or XFS of an NVMe drive of this machine";
constexpr const char* mounts_source = "/proc/self/mountinfo";

bool has_option(const std::string& options, std::string_view wanted) {
  return ("," + options + ",").find("," + std::string(wanted) + ",") != std::string::npos;
}

Finding ext4_finding(Route route, const StoragePlace& place) {
  if (route == Route::p2pdma) return {Verdict::pass, "file system", "ext4", mounts_source};
  if (has_option(place.options, "data=ordered")) {
    return {Verdict::pass, "file system", "ext4, data=ordered is shown", mounts_source};
  }
  return {Verdict::lacking, "file system",
          "ext4 whose options do not show data=ordered, which the vendor's library looks for",
          mounts_source, "mount " + place.mount_point + " with -o data=ordered"};
}

Finding filesystem_finding(Route route, const StoragePlace& place) {
  const std::string& kind = place.filesystem;
  if (kind.empty()) return {Verdict::unknown, "file system", "not known", mounts_source};
  if (kind == "ext4") return ext4_finding(route, place);
  if (kind == "xfs" || kind == "block device") {
    return {Verdict::pass, "file system", kind, mounts_source};
  }
  if (os::is_memory_filesystem(kind)) {
    return {Verdict::lacking, "file system", kind + " keeps its files in memory", mounts_source,
            move_file};
  }
  if (kind == "overlay") {
    const bool may = route == Route::p2pdma;
    return {may ? Verdict::unknown : Verdict::lacking, "file system",
            may ? "overlay: it depends on the file system below" : "overlay of a container",
            mounts_source, "mount the folder of the file into the container as a volume"};
  }
  if (os::is_network_filesystem(kind)) {
    return {Verdict::lacking, "file system", kind + ": the bytes come over a network",
            mounts_source, move_file};
  }
  return {Verdict::lacking, "file system", kind + " does not hand O_DIRECT on to its device",
          mounts_source, move_file};
}

// Whether the kernel's stacking drivers hand device memory on.
Verdict stacking(const MachineTree& tree) {
  const auto version = tree.kernel_version();
  if (version >= first_with_stacking) return Verdict::pass;
  return version <= last_without_stacking ? Verdict::lacking : Verdict::unknown;
}

Finding md_finding(Route route, const Looked& looked, const BlockStack& stack) {
  const std::string source = stack.folder + "/md/level";
  const std::string level = looked.tree.text(source).value_or("md");
  if (route == Route::p2pdma) {
    const auto verdict =
        level == "raid0" || level == "raid1" ? stacking(looked.tree) : Verdict::lacking;
    return {verdict, "device", stack.name + ", " + level + " of md", source,
            verdict == Verdict::pass ? "" : "boot Linux 7.3 or newer, or use one drive"};
  }
  if (level == "raid0") return {Verdict::pass, "device", stack.name + ", raid0 of md", source};
  return {Verdict::unknown, "device", stack.name + ", " + level + " of md", source,
          "use raid0, or one drive; raid1 and raid10 need libcufile 1.19"};
}

Finding mapper_finding(const Looked& looked, const BlockStack& stack) {
  const std::string source = stack.folder + "/dm/uuid";
  const auto uuid = looked.tree.text(source).value_or("");
  const bool crypt = uuid.starts_with("CRYPT");
  const char* kind = uuid.starts_with("LVM") ? "a volume of LVM"
                     : crypt                 ? "an encrypted volume"
                                             : "a volume of device-mapper";
  return {Verdict::lacking, "device",
          fmt::format(
              "{}, {}: {}", stack.name, kind,
              crypt ? "the processor decrypts each byte" : "device-mapper refuses device memory"),
          source, move_file};
}

Finding multipath_finding(Route route, const Looked& looked, const BlockStack& stack) {
  const std::string source = "/sys/class/block/" + stack.name;
  const auto verdict = route == Route::p2pdma ? stacking(looked.tree) : Verdict::lacking;
  return {verdict, "device", stack.name + " goes through NVMe multipath", source,
          verdict == Verdict::pass ? "" : "boot with nvme_core.multipath=N"};
}

Finding metadata_finding(const MachineTree& tree, const BlockStack& stack) {
  const std::string source = stack.folder + "/metadata_bytes";
  const auto bytes = tree.text(source);
  if (!bytes) return {Verdict::unknown, "NVMe metadata", "this kernel does not show it", source};
  if (*bytes == "0") return {Verdict::pass, "NVMe metadata", "none", source};
  return {Verdict::lacking, "NVMe metadata", *bytes + " bytes a block", source,
          "format the namespace without metadata: nvme format --ms=0"};
}

void add_device(Route route, const Looked& looked, const BlockStack& stack,
                std::vector<Finding>& add) {
  const std::string source = "/sys/dev/block";
  if (stack.name.starts_with("dm-")) return add.push_back(mapper_finding(looked, stack));
  if (stack.name.starts_with("md")) {
    add.push_back(md_finding(route, looked, stack));
    for (const BlockStack& below : stack.below) add_device(route, looked, below, add);
    return;
  }
  if (stack.name.starts_with("loop")) {
    return add.push_back(
        {Verdict::lacking, "device", stack.name + ", a file as a device", source, move_file});
  }
  if (!stack.name.starts_with("nvme")) {
    return add.push_back({Verdict::lacking, "device",
                          stack.name + " is no NVMe drive: its driver takes no device memory",
                          source, move_file});
  }
  if (stack.folder.find("/virtual/nvme-subsystem/") != std::string::npos) {
    add.push_back(multipath_finding(route, looked, stack));
  } else {
    add.push_back({Verdict::pass, "device", stack.name + ", NVMe", source});
  }
  add.push_back(metadata_finding(looked.tree, stack));
}

Finding direct_io_finding(const Looked& looked) {
  if (!looked.direct_align_bytes) {
    return {Verdict::unknown, "direct I/O", "neither a folder nor a copy of a machine shows it",
            "statx"};
  }
  if (*looked.direct_align_bytes == 0) {
    return {Verdict::lacking, "direct I/O", "the file system refuses O_DIRECT", "statx", move_file};
  }
  return {Verdict::pass, "direct I/O",
          fmt::format("offsets and sizes by {} bytes; the edges of others are staged",
                      *looked.direct_align_bytes),
          "statx"};
}

}  // namespace

void add_storage_findings(Route route, const Looked& looked, std::vector<Finding>& add) {
  const StoragePlace& place = *looked.place;
  add.push_back(filesystem_finding(route, place));
  if (place.disk) {
    add_device(route, looked, *place.disk, add);
  } else if (place.filesystem != "overlay") {
    add.push_back(
        {Verdict::lacking, "device", "no block device of its own", "/sys/dev/block", move_file});
  }
  add.push_back(direct_io_finding(looked));
}

}  // namespace straightway::tools
