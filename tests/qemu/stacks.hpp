#pragma once
// Block devices upon block devices, made by the kernel's own calls. Each is empty where the kernel
// refused, which is counted as a fault.

#include <string>
#include <vector>

namespace straightway::qemu {

// All modules of the initramfs, in the order of their names.
void load_modules();

// An array of two or more drives without metadata: "/dev/md0".
std::string make_raid0(const std::vector<std::string>& members);
// A device-mapper device over the first 8192 sectors: "/dev/dm-0".
std::string make_linear(const std::string& drive);
// A loop device that reads its drive by direct I/O: "/dev/loop0".
std::string make_loop(const std::string& drive);

}  // namespace straightway::qemu
