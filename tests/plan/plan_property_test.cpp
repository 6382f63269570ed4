// What must hold for every plan, over random requests, facts, settings and doors.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <string>

#include "plan/cut.hpp"
#include "plan/planner.hpp"
#include "tests/plan/plan_scenes.hpp"

namespace straightway::plan {
namespace {

using Wide = unsigned __int128;
constexpr std::uint64_t last_offset = (std::uint64_t{1} << 63) - 1;

// SplitMix64: small, and the same everywhere, so that a seed that fails fails again.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  // Any magnitude, often at or beside a power of two.
  std::uint64_t size() {
    const std::uint64_t power = std::uint64_t{1} << below(64);
    switch (below(5)) {
      case 0:
        return power;
      case 1:
        return power - 1;
      case 2:
        return power + 1;
      case 3:
        return below(power) + power;
      default:
        return one_in(20) ? 0 : below(std::uint64_t{1} << 24);
    }
  }

 private:
  std::uint64_t state_;
};

std::uint64_t knob(Random& random, std::initializer_list<std::uint64_t> usual) {
  return random.one_in(10) ? random.next() >> random.below(64) : random.pick(usual);
}

void randomise_facts(Scene& scene, Random& random) {
  scene.file.device_driver =
      random.pick<const char*>({"nvme", "nvme", "nvme", "virtio-blk", "md", ""});
  scene.file.device = random.one_in(8) ? "" : "/dev/some0";
  scene.file.filesystem =
      random.pick<const char*>({"ext4", "ext4", "xfs", "xfs", "btrfs", "tmpfs"});
  scene.file.is_network = random.one_in(8);
  scene.file.direct_offset_align_bytes =
      random.pick({0U, 1U, 512U, 512U, 4096U, 65536U, 3U, 1U << 21});
  scene.file.direct_memory_align_bytes = random.pick({0U, 4U, 512U, 512U, 4096U, 131072U, 7U});
  scene.machine.page_bytes = random.pick({4096U, 4096U, 16384U, 65536U, 0U});
  scene.machine.cuda_driver = !random.one_in(8);
  scene.machine.cuda_devices = random.pick({0, 1, 1, 2, 2});
  scene.machine.nvfs_loaded = !random.one_in(5);
  scene.machine.nvfs_nodes = !random.one_in(5);
  scene.machine.vendor_library = !random.one_in(5);
  scene.machine.run_udev = !random.one_in(5);
  scene.machine.wsl = random.one_in(8);
  scene.machine.p2pdma_pages = random.one_in(2);
  scene.machine.kernel = random.pick<const char*>({"6.17.4", "7.3.0", "6.2", "7.1", "6.16.1", ""});
  if (random.one_in(4)) scene.machine.routes_built &= static_cast<std::uint8_t>(~random.below(4));
}

void randomise_settings(Settings& settings, Random& random) {
  settings.policy.value = random.pick({Policy::automatic, Policy::direct, Policy::staged});
  settings.cache.value =
      random.pick({Cache::automatic, Cache::keep, Cache::drop, Cache::bypass, Cache::bypass});
  settings.pinned_bytes.value = knob(random, {64U << 20, 64U << 20, 300000, 1U << 16});
  FrontSettings& front = settings.front;
  front.compat_mode.value = random.pick({CompatMode::off, CompatMode::on, CompatMode::automatic});
  front.task_size_bytes.value = knob(random, {4U << 20, 4U << 20, 5000, 1U << 30, 0});
  front.gds_threshold_bytes.value = knob(random, {16384, 0, 1U << 20});
  CufileSettings& cufile = settings.cufile;
  cufile.parallel_io.value = !random.one_in(5);
  cufile.max_io_threads.value = knob(random, {4, 4, 0});
  cufile.min_io_threshold_size_kb.value = knob(random, {8192, 8192, 1024, 4});
  cufile.max_request_parallelism.value = knob(random, {4, 4, 0, 1, 3, 8});
  cufile.max_direct_io_size_kb.value = knob(random, {16384, 1024, 64});
  cufile.allow_compat_mode.value = !random.one_in(4);
  cufile.force_compat_mode.value = random.one_in(4);
  cufile.use_pci_p2pdma.value = random.one_in(3);
}

Scene random_scene(Random& random) {
  Scene scene = device_scene();
  randomise_facts(scene, random);
  randomise_settings(scene.settings, random);
  Request& request = scene.request;
  request.direction = random.pick({Direction::read, Direction::write});
  request.door = random.pick({Door::straightway, Door::straightway, Door::kvikio, Door::cufile});
  request.file.offset = random.one_in(3) ? 0 : random.size();
  if (random.one_in(4)) request.file.offset &= ~std::uint64_t{65535};
  scene.resize(random.size());
  request.file_size_bytes = random.one_in(3) ? 0 : random.size();
  request.registered = random.one_in(2);
  request.memory.address = random.one_in(10) ? 0 : 0x7f0000000000 + random.below(1 << 20);
  if (random.one_in(2)) {
    // Alike in their low bits, as buffers of programs that mean O_DIRECT are.
    request.memory.address = 0x7f0000000000 + (request.file.offset & 0xfffff);
  }
  if (random.one_in(2)) {
    request.memory.space = SpaceKind::host;
    request.memory.device = -1;
  }
  return scene;
}

// How many bytes can move, in arithmetic that cannot overflow.
std::uint64_t movable(const Request& request) {
  Wide end = Wide{request.file.offset} + request.file.size_bytes;
  if (request.direction == Direction::read) {
    end = std::min(end, Wide{last_offset});
    if (request.file_size_bytes > 0) end = std::min(end, Wide{request.file_size_bytes});
  }
  return end <= request.file.offset ? 0 : static_cast<std::uint64_t>(end - request.file.offset);
}

std::uint64_t end_of(const FileRange& range) { return range.offset + range.size_bytes; }

void check_segment(const Scene& scene, const Run& run, const PlannedSegment& segment) {
  const FileRange& payload = segment.payload;
  const FileRange& envelope = segment.envelope;
  ASSERT_GT(payload.size_bytes, 0U);
  // The last of a group takes what is left; no call of the vendor's library is larger than 1 GiB.
  const std::uint64_t most = run.group_bytes == 0 ? run.segment_bytes : std::uint64_t{1} << 30;
  ASSERT_LE(payload.size_bytes, most);
  ASSERT_LE(envelope.size_bytes, most);
  ASSERT_LE(envelope.offset, payload.offset);
  ASSERT_GE(end_of(envelope), end_of(payload));
  ASSERT_EQ(envelope.offset % run.align_bytes, 0U);
  ASSERT_EQ(envelope.size_bytes % run.align_bytes, 0U);
  if (scene.request.direction == Direction::write || run.route != Route::staged) {
    ASSERT_EQ(envelope, payload) << "only the ring takes more than was asked for";
  }
  if (!run.direct_io) return;
  ASSERT_EQ(envelope.offset % scene.file.direct_offset_align_bytes, 0U);
  ASSERT_EQ(envelope.size_bytes % scene.file.direct_offset_align_bytes, 0U);
  const std::uint64_t memory_align = scene.file.direct_memory_align_bytes;
  if (run.route == Route::direct_host && scene.request.memory.address != 0 && memory_align != 0) {
    const std::uint64_t into = payload.offset - scene.request.file.offset;
    ASSERT_EQ((scene.request.memory.address + into) % memory_align, 0U);
  }
}

// All segments where they are few, else those at both ends and some between.
void check_segments(const Scene& scene, const Run& run, Random& random) {
  const std::uint64_t count = segment_count(run);
  ASSERT_GT(count, 0U);
  ASSERT_EQ(segment(run, 0).payload.offset, run.file.offset);
  ASSERT_EQ(end_of(segment(run, count - 1).payload), end_of(run.file));
  const bool few = count <= 40;
  for (std::uint64_t k = 0; k < std::min<std::uint64_t>(count, 40); ++k) {
    const std::uint64_t i = few || k < 4 ? k : k < 8 ? count - k + 3 : random.below(count);
    const PlannedSegment here = segment(run, i);
    ASSERT_NO_FATAL_FAILURE(check_segment(scene, run, here));
    if (i + 1 == count) continue;
    if (run.group_bytes == 0) {
      ASSERT_EQ(end_of(here.payload) % run.segment_bytes, 0U);
    }
    ASSERT_EQ(end_of(here.payload), segment(run, i + 1).payload.offset);
  }
}

bool is_direct(Route route) {
  return route == Route::nvfs || route == Route::p2pdma || route == Route::direct_host;
}

void check_run(const Scene& scene, const Run& run) {
  const bool for_host = run.route == Route::buffered || run.route == Route::direct_host;
  ASSERT_EQ(for_host, scene.request.memory.space == SpaceKind::host);
  ASSERT_TRUE(scene.machine.routes_built >> index(run.route) & 1U) << to_string(run.route);
  ASSERT_TRUE(run.group_bytes != 0 || std::has_single_bit(run.segment_bytes));
  ASSERT_TRUE(std::has_single_bit(run.align_bytes));
  ASSERT_NE(run.reason, Reason::none);
  ASSERT_EQ(run.direct_io, run.align_bytes > 1);
  ASSERT_TRUE(run.direct_io || !is_direct(run.route));
  const bool must =
      scene.request.door == Door::straightway && scene.settings.policy.value == Policy::direct;
  if (must && !is_direct(run.route)) {
    ASSERT_EQ(run.reason, Reason::edge_block);
    ASSERT_LT(run.file.size_bytes, std::uint64_t{1} << 20);
  }
}

void check_tiling(const Scene& scene, const Plan& plan, Random& random) {
  std::uint64_t next = scene.request.file.offset;
  const std::uint64_t page = scene.machine.page_bytes == 0 ? 4096 : scene.machine.page_bytes;
  for (std::size_t i = 0; i < plan.run_count; ++i) {
    const Run& run = plan.runs[i];
    ASSERT_EQ(run.file.offset, next);
    next += run.file.size_bytes;
    ASSERT_NO_FATAL_FAILURE(check_run(scene, run));
    ASSERT_NO_FATAL_FAILURE(check_segments(scene, run, random));
    if (i == 0 || plan.runs[i - 1].direct_io == run.direct_io) continue;
    ASSERT_EQ(run.file.offset % page, 0U) << "direct and buffered meet inside a page";
    ASSERT_EQ(run.file.offset % scene.file.direct_offset_align_bytes, 0U);
  }
  ASSERT_EQ(next - scene.request.file.offset, movable(scene.request));
}

void check_refusals(const Plan& plan) {
  std::array<bool, route_count> used{};
  for (std::size_t i = 0; i < plan.run_count; ++i) used[index(plan.runs[i].route)] = true;
  const bool nothing_asked = plan.run_count == 0 && plan.failure == Reason::none;
  for (const Route route : all_routes) {
    const Reason reason = plan.refused[index(route)];
    ASSERT_EQ(reason == Reason::none, used[index(route)] || nothing_asked) << to_string(route);
    ASSERT_FALSE(
        sentence(reason, route, plan.file.get(), plan.machine.get(), plan.settings.get()).empty());
  }
}

void check_cut(const Cut& cut, const FileRange& range) {
  ASSERT_EQ(cut.size_bytes, range.size_bytes);
  if (range.size_bytes == 0) {
    ASSERT_EQ(cut.count, 0U);
    return;
  }
  ASSERT_GT(cut.count, 0U);
  ASSERT_EQ(cut.piece(0).offset, range.offset);
  const FileRange last = cut.piece(cut.count - 1);
  ASSERT_GT(last.size_bytes, 0U);
  ASSERT_LE(last.size_bytes, range.size_bytes);
  ASSERT_EQ(end_of(last), end_of(range));
  if (cut.count == 1) return;
  ASSERT_EQ(end_of(cut.piece(0)), cut.piece(1).offset);
  ASSERT_EQ(end_of(cut.piece(cut.count - 2)), last.offset);
}

void check_layers(const Plan& plan) {
  const FrontDecision& front = plan.front;
  const CufileDecision& cufile = plan.cufile;
  if (plan.failure == Reason::range_too_large) return;
  ASSERT_EQ(front.used, plan.request.door == Door::kvikio);
  if (front.used) {
    ASSERT_NO_FATAL_FAILURE(check_cut(front.tasks, plan.request.file));
  }
  ASSERT_EQ(cufile.used, plan.request.door == Door::cufile || front.to_cufile);
  ASSERT_EQ(cufile.counters.n,
            cufile.counters.nvfs + cufile.counters.p2pdma + cufile.counters.posix);
  if (!cufile.used || cufile.refused || plan.request.file.size_bytes == 0) return;
  const std::uint64_t tasks = front.used ? front.tasks.count : 1;
  const FileRange first = front.used ? front.tasks.piece(0) : plan.request.file;
  const FileRange last = front.used ? front.tasks.piece(tasks - 1) : plan.request.file;
  ASSERT_NO_FATAL_FAILURE(check_cut(cufile.parts, first));
  ASSERT_NO_FATAL_FAILURE(check_cut(cufile.last_parts, last));
  if (plan.request.memory.space == SpaceKind::host) return;
  ASSERT_EQ(cufile.counters.n, cufile.parts.count * (tasks - 1) + cufile.last_parts.count);
}

void check_plan(const Scene& scene, Random& random) {
  const Plan plan = scene.plan();
  ASSERT_EQ(plan, scene.plan());
  ASSERT_EQ(plan.request, scene.request);
  ASSERT_NO_FATAL_FAILURE(check_refusals(plan));
  ASSERT_NO_FATAL_FAILURE(check_layers(plan));
  if (plan.failure != Reason::none) {
    ASSERT_EQ(plan.run_count, 0);
    ASSERT_EQ(plan.runs, decltype(plan.runs){});
    return;
  }
  ASSERT_LE(Wide{scene.request.file.offset} + movable(scene.request),
            std::max(Wide{last_offset}, Wide{scene.request.file.offset}));
  ASSERT_NO_FATAL_FAILURE(check_tiling(scene, plan, random));
}

TEST(PlanProperty, EveryPlanTilesItsRequestAndExplainsItself) {
  std::array<int, route_count> seen{};
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= 40000; ++seed) {
    Random random(seed);
    const Scene scene = random_scene(random);
    const Plan plan = scene.plan();
    check_plan(scene, random);
    if (HasFatalFailure()) FAIL() << "seed " << seed << '\n' << plan.to_text() << plan.to_json();
    for (std::size_t i = 0; i < plan.run_count; ++i) ++seen[index(plan.runs[i].route)];
    failures += plan.failure != Reason::none ? 1 : 0;
  }
  // The generator reaches what it is meant to reach.
  EXPECT_GT(failures, 1000);
  for (const Route route : all_routes) {
    EXPECT_GT(seen[index(route)], route == Route::pinned_cache ? -1 : 50) << to_string(route);
  }
}

TEST(PlanProperty, TextAndJsonHoldForEveryPlan) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    const Plan plan = random_scene(random).plan();
    ASSERT_EQ(plan.to_text().back(), '\n');
    ASSERT_EQ(plan.to_text().find("a reason that"), std::string::npos) << plan.to_text();
    ASSERT_EQ(plan.to_text().find("no reason was"), std::string::npos) << plan.to_text();
    ASSERT_EQ(plan.to_json().front(), '{');
  }
}

TEST(PlanProperty, PartsOfTheCufileLayerTileTheirRequest) {
  for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
    Random random(seed);
    Settings settings;
    randomise_settings(settings, random);
    const FileRange range{random.size() >> 1, random.size() >> 1};
    const bool registered = random.one_in(2);
    const Cut cut = cufile_parts(range, SpaceKind::cuda, registered, settings.cufile);
    check_cut(cut, range);
    if (HasFatalFailure()) FAIL() << "seed " << seed;
    const std::uint64_t most = settings.cufile.max_request_parallelism.value;
    ASSERT_LE(cut.count, std::max<std::uint64_t>(1, most)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace straightway::plan
