// What planning costs. Budget: 1 GiB in 4 MiB tasks, 50 us.

#include <benchmark/benchmark.h>

#include "plan/planner.hpp"

namespace straightway {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

plan::Facts facts() {
  auto file = std::make_shared<FileFacts>();
  file->path = "weights.bin";
  file->filesystem = "ext4";
  file->device = "/dev/nvme0n1";
  file->device_driver = "nvme";
  file->direct_offset_align_bytes = 512;
  file->direct_memory_align_bytes = 512;
  auto machine = std::make_shared<MachineFacts>();
  machine->cuda_driver = true;
  machine->cuda_devices = 1;
  machine->vendor_library = true;
  machine->run_udev = true;
  machine->uring = true;
  return {file, machine, nullptr, {}, false};
}

Request request(Door door, SpaceKind space, std::uint64_t size_bytes) {
  Request wanted;
  wanted.door = door;
  wanted.file = {0, size_bytes};
  wanted.memory = {space, space == SpaceKind::cuda ? 0 : -1, 0x7f00'0000'0000, size_bytes};
  wanted.file_size_bytes = size_bytes;
  return wanted;
}

// The plan, and every task and segment of it, as the driver would walk them.
void plan_and_walk(benchmark::State& state, const Request& wanted) {
  const plan::Facts known = facts();
  const auto settings = std::make_shared<const Settings>();
  for (auto _ : state) {
    const Plan made = plan::make_plan(wanted, known, settings);
    for (std::uint64_t i = 0; i < made.front.tasks.count; ++i) {
      benchmark::DoNotOptimize(made.front.tasks.piece(i));
    }
    for (std::size_t r = 0; r < made.run_count; ++r) {
      const std::uint64_t count = segment_count(made.runs[r]);
      for (std::uint64_t i = 0; i < count; ++i) {
        benchmark::DoNotOptimize(segment(made.runs[r], i));
      }
    }
  }
}

void plan_one_gib_in_tasks(benchmark::State& state) {
  plan_and_walk(state, request(Door::kvikio, SpaceKind::cuda, gib));
}
BENCHMARK(plan_one_gib_in_tasks)->Unit(benchmark::kMicrosecond);

void plan_one_gib_automatic(benchmark::State& state) {
  plan_and_walk(state, request(Door::straightway, SpaceKind::cuda, gib));
}
BENCHMARK(plan_one_gib_automatic)->Unit(benchmark::kMicrosecond);

void plan_4_kib_into_host_memory(benchmark::State& state) {
  plan_and_walk(state, request(Door::straightway, SpaceKind::host, 4096));
}
BENCHMARK(plan_4_kib_into_host_memory);

}  // namespace
}  // namespace straightway
