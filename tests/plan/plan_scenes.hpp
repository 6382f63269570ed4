#pragma once
// Requests, facts and settings for the tests of planning, ready to be varied.

#include <memory>

#include "plan/planner.hpp"

namespace straightway::plan {

struct Scene {
  Request request;
  FileFacts file;
  MachineFacts machine;
  Settings settings;
  std::vector<FileRange> pinned;
  bool pin_lost = false;

  void resize(std::uint64_t size_bytes) {
    request.file.size_bytes = size_bytes;
    request.memory.size_bytes = size_bytes;
  }
  Plan plan() const {
    const Facts facts{std::make_shared<FileFacts>(file), std::make_shared<MachineFacts>(machine),
                      nullptr, pinned, pin_lost};
    return make_plan(request, facts, std::make_shared<Settings>(settings));
  }
};

// 1 GiB read into host memory, from ext4 on a virtio disk, on a machine without a GPU.
inline Scene host_scene() {
  Scene scene;
  scene.resize(std::uint64_t{1} << 30);
  scene.request.memory.address = 0x7f0000000000;
  scene.request.spare_memory_bytes = std::uint64_t{64} << 30;
  scene.file.path = "weights.bin";
  scene.file.filesystem = "ext4";
  scene.file.mount_point = "/";
  scene.file.device = "/dev/vda";
  scene.file.device_driver = "virtio-blk";
  scene.file.direct_offset_align_bytes = 512;
  scene.file.direct_memory_align_bytes = 4;
  scene.machine.cuda_why_not = "libcuda.so.1 not found";
  return scene;
}

// The same into a GPU, without any direct path; NVIDIA's library is there.
inline Scene device_scene() {
  Scene scene = host_scene();
  scene.request.memory = {SpaceKind::cuda, 0, 0x7e0000000000, std::uint64_t{1} << 30};
  scene.machine.cuda_driver = true;
  scene.machine.cuda_devices = 1;
  scene.machine.cuda_why_not = "";
  scene.machine.vendor_library = true;
  scene.machine.p2pdma_pages = true;
  scene.machine.routes_built |= 1U << index(Route::p2pdma);
  scene.machine.kernel = "6.17.4";
  scene.machine.run_udev = true;
  return scene;
}

// The same with an NVMe drive, which P2PDMA serves.
inline Scene p2pdma_scene() {
  Scene scene = device_scene();
  scene.file.device = "/dev/nvme0n1";
  scene.file.device_driver = "nvme";
  return scene;
}

// The same with nvidia-fs, and a kernel that does no P2PDMA.
inline Scene direct_scene() {
  Scene scene = p2pdma_scene();
  scene.machine.nvfs_loaded = true;
  scene.machine.nvfs_nodes = true;
  scene.machine.p2pdma_pages = false;
  scene.machine.kernel = "6.1.0-53-amd64";
  return scene;
}

}  // namespace straightway::plan
