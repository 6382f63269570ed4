#pragma once
// A machine that has all that the route nvfs asks for, as fake facts: the simulated GPU, the
// stand-in of the vendor's library, nvidia-fs's files, and a file on ext4 on an NVMe drive.

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "api/engine.hpp"
#include "straightway/file.hpp"
#include "tests/fakes/fake_cufile.hpp"
#include "tests/memory/gpu_fixture.hpp"
#include "tests/os/temp_tree.hpp"
#include "tests/temp_file.hpp"

namespace straightway {

class VendorCall : public memory::Gpu {
 protected:
  static constexpr std::uint64_t mib = 1 << 20;

  VendorCall() : cufile(FAKES_DIR "/cufile/libcufile.so.0"), bytes(tests::pattern(size)) {
    cufile.heal();
    cufile.direct(1);
    path = tree.write("file", {bytes.data(), bytes.size()});
    const std::string disk = "../../devices/pci0000:00/0000:00:03.0/nvme/nvme0/nvme0n1";
    struct stat status{};
    ::stat(path.c_str(), &status);
    const auto number =
        std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
    tree.write("proc/self/mountinfo", "9001 1 " + number + " / / rw - ext4 /dev/nvme0n1 rw\n");
    tree.folder("sys/dev/block/" + disk);
    tree.link("sys/dev/block/" + number, disk);
    tree.folder("run/udev");
    tree.write("dev/nvidia-fs0", "");
    stats = tree.write("proc/driver/nvidia-fs/stats", "");
    cufile.kernel_stats(stats.c_str(), 1);
  }
  ~VendorCall() override {
    file = {};
    context.reset();
    EXPECT_EQ(cufile.handles(), 0U);
    EXPECT_EQ(cufile.buffers(), 0U);
    EXPECT_EQ(cufile.open_count(), 0U);
    cufile.heal();
  }
  void SetUp() override {
    Gpu::SetUp();
    use_device(0);
    device = user_memory(size);
    begin();
    if (file.facts()->direct_offset_align_bytes == 0) GTEST_SKIP() << "no O_DIRECT in TMPDIR";
  }
  // A machine without nvidia-fs whose kernel and library do P2PDMA.
  void begin_p2pdma(const char* kernel = "6.17.4", OpenOptions open = {}) {
    std::filesystem::remove_all(tree.root() + "/proc/driver/nvidia-fs");
    tree.write("proc/sys/kernel/osrelease", std::string(kernel) + "\n");
    tree.write("sys/bus/pci/devices/0000:17:00.0/vendor", "0x10de\n");
    tree.write("sys/bus/pci/devices/0000:17:00.0/p2pmem/size", "137438953472\n");
    cufile.kernel_stats(nullptr, 0);
    cufile.direct(0);
    cufile.has_p2pdma(1);
    begin({}, open);
  }
  void begin(ContextOptions options = {}, OpenOptions open = {}) {
    file = {};
    options.vendor_library = FAKES_DIR "/cufile/libcufile.so.0";
    options.on_warning = [this](std::string_view text) { warnings.emplace_back(text); };
    context = Context::around(Engine::create(options, os::kernel(), tree.root()).value());
    file = File::open(path, "r+", open, context).value();
  }
  Memory memory(std::uint64_t count = size, std::uint64_t offset = 0) const {
    return {reinterpret_cast<void*>(device + offset), count};
  }
  static CallOptions direct(std::uint64_t offset = 0) {
    CallOptions options;
    options.policy = Policy::direct;
    options.offset = offset;
    return options;
  }
  // A direct read is not confirmed by anybody independent.
  void expect_nothing_observed() {
    auto options = direct();
    options.evidence = Demand::observed;
    const auto missing = file.read_into(memory(), options);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().kind, ErrorKind::evidence_missing);
  }
  static CallOptions past_cache() {
    CallOptions options;
    options.cache = Cache::bypass;
    return options;
  }
  void expect_arrived(std::uint64_t count, std::uint64_t offset = 0) {
    const auto got = device_chars(device, count);
    EXPECT_TRUE(std::equal(got.begin(), got.end(), bytes.begin() + static_cast<long>(offset)));
  }
  static const RouteShare& share(const Receipt& receipt, Route route) {
    return receipt.routes[index(route)];
  }

  static constexpr std::size_t size = 12 * mib;
  os::TempTree tree;
  fakes::FakeCufile cufile;
  std::vector<char> bytes;
  std::string path;
  std::string stats;
  std::vector<std::string> warnings;
  memory::cuda::DevicePointer device = 0;
  std::shared_ptr<Context> context;
  File file;
};

}  // namespace straightway
