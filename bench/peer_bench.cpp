// What it costs to plan a call into peer memory once the way there was tried: finding the memory,
// and the plan. Budget: 1 us more than for host memory; a read also looks for holes, which is a
// system call. A machine of fake facts; ordinary memory poses as a device's.

#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <string>

#include "api/engine.hpp"
#include "api/peer_call.hpp"
#include "api/planning.hpp"
#include "straightway/straightway.hpp"
#include "tests/os/temp_tree.hpp"

namespace straightway {
namespace {

constexpr const char* device = "0000:03:00.0";
constexpr std::size_t memory_bytes = 1 << 20;

// A file on ext4 on an NVMe drive, below one switch with a device that publishes its memory.
class PeerScene {
 public:
  PeerScene() {
    path_ = tree_.write("file", std::string(memory_bytes, 's'));
    const std::string below = "../../devices/pci0000:00/0000:00:03.0/0000:01:00.0/";
    const std::string disk = below + "0000:02:01.0/0000:04:00.0/nvme/nvme0/nvme0n1";
    struct stat status{};
    ::stat(path_.c_str(), &status);
    const auto number =
        std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
    tree_.write("proc/self/mountinfo", "9001 1 " + number + " / / rw - ext4 /dev/nvme0n1 rw\n");
    tree_.write("proc/sys/kernel/osrelease", "7.3.4\n");
    tree_.folder("sys/dev/block/" + disk);
    tree_.link("sys/dev/block/" + number, disk);
    tree_.folder("sys/devices/pci0000:00/0000:00:03.0/0000:01:00.0/0000:03:00.0/p2pmem");
    tree_.link(std::string("sys/bus/pci/devices/") + device, "../" + below + device);
    context_ = Context::around(Engine::create({}, os::kernel(), tree_.root()).value());
    memory_ = ::mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    file_ = OpenFile::open(path_, "r+", {}, context_->engine()).value();
  }
  ~PeerScene() { ::munmap(memory_, memory_bytes); }
  PeerScene(const PeerScene&) = delete;
  PeerScene& operator=(const PeerScene&) = delete;

  PeerMemory adopt() const {
    return PeerMemory::adopt({memory_, memory_bytes}, device, context_).value();
  }
  Plan plan(Direction direction) const {
    CallRange range{FileUse(file_), 0, memory_bytes, {memory_, memory_bytes}};
    find_peer(range).value();
    Planning planning(direction, file_->settings);
    auto plan = planning.plan(range).value();
    try_peer(plan, range, planning.stamp());
    return plan;
  }

 private:
  os::TempTree tree_;
  std::string path_;
  std::shared_ptr<Context> context_;
  void* memory_ = nullptr;
  std::shared_ptr<OpenFile> file_;
};

void plan_into_peer_memory(benchmark::State& state, Direction direction) {
  const PeerScene scene;
  const PeerMemory peer = scene.adopt();
  if (scene.plan(direction).runs[0].reason != Reason::peer_direct) {  // this one tries the way
    return state.SkipWithError("the way cannot be tried here: no O_DIRECT in TMPDIR?");
  }
  for (auto _ : state) benchmark::DoNotOptimize(scene.plan(direction));
}
void plan_peer_write(benchmark::State& state) { plan_into_peer_memory(state, Direction::write); }
BENCHMARK(plan_peer_write);
// Knows that there are no holes, by the file's stamp, once it is settled.
void plan_peer_read(benchmark::State& state) { plan_into_peer_memory(state, Direction::read); }
BENCHMARK(plan_peer_read);

void plan_host_write(benchmark::State& state) {
  const PeerScene scene;
  for (auto _ : state) benchmark::DoNotOptimize(scene.plan(Direction::write));
}
BENCHMARK(plan_host_write);

}  // namespace
}  // namespace straightway
