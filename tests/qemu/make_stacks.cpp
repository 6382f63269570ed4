#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <linux/loop.h>
#include <linux/major.h>
#include <linux/raid/md_p.h>
#include <linux/raid/md_u.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "guest.hpp"
#include "stacks.hpp"

namespace straightway::qemu {
namespace {

// Closes it, and says which call failed.
class Node {
 public:
  Node(std::string path, int flags = O_RDWR)
      : path_(std::move(path)), fd_(::open(path_.c_str(), flags | O_CLOEXEC)) {
    check(fd_ >= 0, path_ + " cannot be opened: " + std::strerror(errno));
  }
  ~Node() { ::close(fd_); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  int fd() const { return fd_; }
  template <class Argument>
  bool call(unsigned long request, Argument argument, const char* name) const {
    const bool good = ::ioctl(fd_, request, argument) >= 0;
    check(good, path_ + ", " + name + ": " + std::strerror(errno));
    return good;
  }

 private:
  std::string path_;
  int fd_;
};

bool appears(const std::string& path) {
  for (int i = 0; i < 500 && ::access(path.c_str(), R_OK) != 0; ++i) ::usleep(20000);
  const bool there = ::access(path.c_str(), R_OK) == 0;
  check(there, path + " did not come up");
  return there;
}

// What one call of the device mapper takes, with room for one target.
struct DmCall {
  dm_ioctl head{};
  dm_target_spec target{};
  char parameters[128] = {};

  DmCall() {
    head.version[0] = DM_VERSION_MAJOR;
    head.data_size = sizeof *this;
    head.data_start = offsetof(DmCall, target);
    std::strcpy(head.name, "linear");
  }
};

}  // namespace

void load_modules() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator("/modules")) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    const Node module(path, O_RDONLY);
    const auto loaded = ::syscall(SYS_finit_module, module.fd(), "", 0);
    check(loaded == 0, path + " was not loaded: " + std::strerror(errno));
  }
}

std::string make_raid0(const std::vector<std::string>& members) {
  std::ofstream("/sys/module/md_mod/parameters/new_array") << "md0";
  if (!appears("/dev/md0")) return "";
  const Node array("/dev/md0");
  mdu_array_info_t info{};
  info.minor_version = 90;
  info.nr_disks = info.raid_disks = static_cast<int>(members.size());
  info.active_disks = info.working_disks = info.nr_disks;
  info.not_persistent = 1;
  info.chunk_size = 64 << 10;
  if (!array.call(SET_ARRAY_INFO, &info, "SET_ARRAY_INFO")) return "";
  for (int i = 0; i < info.nr_disks; ++i) {
    struct stat status{};
    ::stat(members[static_cast<std::size_t>(i)].c_str(), &status);
    mdu_disk_info_t disk{};
    disk.number = disk.raid_disk = i;
    disk.major = static_cast<int>(major(status.st_rdev));
    disk.minor = static_cast<int>(minor(status.st_rdev));
    disk.state = (1 << MD_DISK_SYNC) | (1 << MD_DISK_ACTIVE);
    if (!array.call(ADD_NEW_DISK, &disk, "ADD_NEW_DISK")) return "";
  }
  mdu_param_t none{};
  return array.call(RUN_ARRAY, &none, "RUN_ARRAY") ? "/dev/md0" : "";
}

std::string make_linear(const std::string& drive) {
  if (!appears("/dev/mapper/control")) return "";
  const Node control("/dev/mapper/control");
  DmCall create;
  if (!control.call(DM_DEV_CREATE, &create, "DM_DEV_CREATE")) return "";
  DmCall load;
  load.head.target_count = 1;
  load.target.length = 8192;
  std::strcpy(load.target.target_type, "linear");
  std::strcpy(load.parameters, (drive + " 0").c_str());
  if (!control.call(DM_TABLE_LOAD, &load, "DM_TABLE_LOAD")) return "";
  DmCall resume;
  if (!control.call(DM_DEV_SUSPEND, &resume, "DM_DEV_SUSPEND")) return "";
  const auto path = "/dev/dm-" + std::to_string(minor(resume.head.dev));
  return appears(path) ? path : "";
}

std::string make_loop(const std::string& drive) {
  if (!appears("/dev/loop-control")) return "";
  const Node control("/dev/loop-control");
  const int number = ::ioctl(control.fd(), LOOP_CTL_GET_FREE);
  const auto path = "/dev/loop" + std::to_string(number);
  if (!appears(path)) return "";
  const Node below(drive);
  loop_config wanted{};
  wanted.fd = static_cast<std::uint32_t>(below.fd());
  wanted.info.lo_flags = LO_FLAGS_DIRECT_IO;
  return Node(path).call(LOOP_CONFIGURE, &wanted, "LOOP_CONFIGURE") ? path : "";
}

}  // namespace straightway::qemu
