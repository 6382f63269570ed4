// Straightway's own door: which route each situation gets, and why.
#include <gtest/gtest.h>

#include "plan/direct_paths.hpp"
#include "plan/planner.hpp"
#include "tests/plan/plan_scenes.hpp"

namespace straightway::plan {
namespace {

constexpr std::uint64_t KiB = 1024;
constexpr std::uint64_t MiB = 1024 * KiB;

Reason refusal(const Plan& plan, Route route) { return plan.refused[index(route)]; }

using Reasons = std::vector<Reason>;

Reasons reasons_lacking(Route route, const Scene& scene) {
  const auto all = lacking_for(route, scene.file, scene.machine);
  return {all.reasons.begin(), all.reasons.begin() + static_cast<std::ptrdiff_t>(all.count)};
}

// A file of four pages, and 4096 + 100 bytes from its second one.
Scene second_page(Scene scene) {
  scene.request.file_size_bytes = 4 * 4096;
  scene.resize(4096 + 100);
  scene.request.file.offset = 4096;
  scene.settings.cache.value = Cache::bypass;
  return scene;
}

TEST(AutoPolicy, HostMemoryIsBuffered) {
  const Plan plan = host_scene().plan();
  ASSERT_EQ(plan.run_count, 1);
  straightway::Run kept{Route::buffered, Reason::host_memory, {0, 1024 * MiB}, MiB};
  kept.cold = ColdWay::kept;
  kept.cold_reason = Reason::cold_kept;
  EXPECT_EQ(plan.runs[0], kept);
  EXPECT_EQ(segment_count(plan.runs[0]), 1024U);
  EXPECT_EQ(refusal(plan, Route::direct_host), Reason::not_preferred);
  EXPECT_EQ(refusal(plan, Route::staged), Reason::space_is_host);
}

TEST(AutoPolicy, SmallRequestsSaySo) {
  Scene scene = host_scene();
  scene.resize(256 * KiB - 1);
  EXPECT_EQ(scene.plan().runs[0].reason, Reason::small_request);
  scene.resize(256 * KiB);
  EXPECT_EQ(scene.plan().runs[0].reason, Reason::host_memory);
}

TEST(AutoPolicy, SegmentsEndAtAbsoluteMultiples) {
  Scene scene = host_scene();
  scene.request.file.offset = MiB - 100;
  scene.resize(MiB + 200);
  const straightway::Run run = scene.plan().runs[0];
  ASSERT_EQ(segment_count(run), 3U);
  EXPECT_EQ(segment(run, 0).payload, (FileRange{MiB - 100, 100}));
  EXPECT_EQ(segment(run, 1).payload, (FileRange{MiB, MiB}));
  EXPECT_EQ(segment(run, 2).payload, (FileRange{2 * MiB, 100}));
}

TEST(AutoPolicy, A1_TailOfADirectTransferStartsAtItsAbsoluteOffset) {
  for (const Direction direction : {Direction::read, Direction::write}) {
    Scene scene = second_page(host_scene());
    scene.request.direction = direction;
    const Plan plan = scene.plan();
    ASSERT_EQ(plan.run_count, 2);
    EXPECT_EQ(plan.runs[0].route, Route::direct_host);
    EXPECT_EQ(plan.runs[0].file, (FileRange{4096, 4096}));
    EXPECT_TRUE(plan.runs[0].direct_io);
    EXPECT_EQ(plan.runs[1].route, Route::buffered);
    EXPECT_EQ(plan.runs[1].reason, Reason::edge_block);
    EXPECT_EQ(plan.runs[1].file, (FileRange{8192, 100}));
    EXPECT_FALSE(plan.runs[1].direct_io);
  }
}

TEST(AutoPolicy, A1_StagedReadsWidenTheEnvelopeAndWritesDoNot) {
  Scene scene = second_page(device_scene());
  Plan plan = scene.plan();
  ASSERT_EQ(plan.run_count, 1);
  EXPECT_EQ(segment(plan.runs[0], 0), (PlannedSegment{{4096, 4196}, {4096, 8192}}));
  scene.request.direction = Direction::write;
  plan = scene.plan();
  ASSERT_EQ(plan.run_count, 2);
  EXPECT_EQ(segment(plan.runs[0], 0), (PlannedSegment{{4096, 4096}, {4096, 4096}}));
  EXPECT_TRUE(plan.runs[0].direct_io);
  EXPECT_EQ(segment(plan.runs[1], 0), (PlannedSegment{{8192, 100}, {8192, 100}}));
  EXPECT_FALSE(plan.runs[1].direct_io);
}

TEST(AutoPolicy, A4_NothingIsPlannedForNothing) {
  for (Scene scene : {host_scene(), device_scene()}) {
    for (const Door door : {Door::straightway, Door::kvikio, Door::cufile}) {
      for (const std::uint64_t offset : {std::uint64_t{0}, 4 * KiB, 9 * MiB, ~std::uint64_t{0}}) {
        scene.request.door = door;
        scene.request.file_size_bytes = 4 * KiB;
        scene.request.file.offset = offset;
        scene.resize(0);
        const Plan plan = scene.plan();
        EXPECT_EQ(plan.run_count, 0);
        EXPECT_EQ(plan.failure, Reason::none);
        EXPECT_EQ(plan.cufile.counters, LayerCounters{});
      }
    }
  }
}

TEST(AutoPolicy, ReadsEndWithTheFileAndWritesDoNot) {
  Scene scene = host_scene();
  scene.request.file_size_bytes = 3 * MiB + 5;
  scene.request.file.offset = MiB;
  EXPECT_EQ(scene.plan().runs[0].file, (FileRange{MiB, 2 * MiB + 5}));
  EXPECT_EQ(scene.plan().request.file.size_bytes, 1024 * MiB);
  scene.request.direction = Direction::write;
  EXPECT_EQ(scene.plan().runs[0].file.size_bytes, 1024 * MiB);
  scene.request.direction = Direction::read;
  scene.request.file.offset = 4 * MiB;
  EXPECT_EQ(scene.plan().run_count, 0);
}

TEST(AutoPolicy, A10_CutsFollowTheProbedAlignment) {
  for (const std::uint32_t align : {512U, 4096U, 65536U}) {
    Scene scene = host_scene();
    scene.file.direct_offset_align_bytes = align;
    scene.settings.policy.value = Policy::direct;
    scene.request.file.offset = 1000;
    scene.request.memory.address += 1000;
    scene.resize(MiB);
    const std::uint64_t block = std::max(align, 4096U);
    const Plan plan = scene.plan();
    ASSERT_EQ(plan.run_count, 3);
    EXPECT_EQ(plan.runs[0].file, (FileRange{1000, block - 1000}));
    EXPECT_EQ(plan.runs[1].file, (FileRange{block, MiB - block}));
    EXPECT_EQ(plan.runs[1].align_bytes, block);
    EXPECT_EQ(plan.runs[2].file, (FileRange{MiB, 1000}));
  }
}

TEST(AutoPolicy, A10_SixtyFourKibibytePagesCount) {
  Scene scene = host_scene();
  scene.machine.page_bytes = 65536;
  scene.settings.policy.value = Policy::direct;
  scene.request.file.offset = 4096;
  scene.request.memory.address += 4096;
  scene.resize(MiB);
  EXPECT_EQ(scene.plan().runs[1].file, (FileRange{65536, MiB - 65536}));
}

TEST(AutoPolicy, A16_RangesBeyondAnyFileAreRefusedOrClipped) {
  for (Scene scene : {host_scene(), device_scene()}) {
    for (const std::uint64_t size : {std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
      scene.request.file.offset = 4096;
      scene.resize(size);
      scene.request.direction = Direction::write;
      Plan plan = scene.plan();
      EXPECT_EQ(plan.failure, Reason::range_too_large);
      EXPECT_EQ(plan.run_count, 0);
      scene.request.direction = Direction::read;
      plan = scene.plan();
      EXPECT_EQ(plan.runs[0].file, (FileRange{4096, (std::uint64_t{1} << 63) - 1 - 4096}));
      EXPECT_EQ(segment_count(plan.runs[0]), (std::uint64_t{1} << 43));
    }
  }
}

TEST(AutoPolicy, DirectToHostNeedsFittingMemory) {
  Scene scene = host_scene();
  scene.settings.policy.value = Policy::direct;
  scene.file.direct_memory_align_bytes = 512;
  scene.request.memory.address += 1;
  Plan plan = scene.plan();
  EXPECT_EQ(plan.failure, Reason::memory_misaligned);
  EXPECT_EQ(refusal(plan, Route::direct_host), Reason::memory_misaligned);
  EXPECT_EQ(refusal(plan, Route::buffered), Reason::policy_forbids);
  scene.request.file.offset = 1;  // address and offset agree again
  EXPECT_EQ(scene.plan().failure, Reason::none);
  EXPECT_EQ(scene.plan().runs[0].file, (FileRange{1, 4095}));
  scene.request.file.offset = 0;
  scene.settings.policy.value = Policy::automatic;
  scene.settings.cache.value = Cache::bypass;
  plan = scene.plan();
  EXPECT_EQ(plan.runs[0].route, Route::buffered);
  EXPECT_EQ(refusal(plan, Route::direct_host), Reason::memory_misaligned);
}

TEST(AutoPolicy, DirectRefusesWhatHoldsNoBlock) {
  Scene scene = host_scene();
  scene.settings.policy.value = Policy::direct;
  scene.file.direct_memory_align_bytes = 512;
  scene.request.file.offset = 100;
  scene.resize(8000);  // ends at 8100, no whole page
  EXPECT_EQ(scene.plan().failure, Reason::request_too_small);
  scene.resize(8092);
  EXPECT_EQ(scene.plan().failure, Reason::memory_misaligned);
  scene.request.memory.address += 100;
  EXPECT_EQ(scene.plan().run_count, 2);
}

TEST(AutoPolicy, E14_WithoutDirectIoTheReadIsBufferedAndSaysWhy) {
  Scene scene = host_scene();
  scene.file.direct_offset_align_bytes = 0;
  scene.settings.cache.value = Cache::bypass;
  Plan plan = scene.plan();
  EXPECT_EQ(plan.runs[0].route, Route::buffered);
  EXPECT_EQ(refusal(plan, Route::direct_host), Reason::no_direct_io);
  scene.settings.policy.value = Policy::direct;
  EXPECT_EQ(scene.plan().failure, Reason::no_direct_io);
  scene = device_scene();
  scene.file.direct_offset_align_bytes = 0;
  scene.settings.cache.value = Cache::bypass;
  plan = scene.plan();
  EXPECT_EQ(plan.runs[0].route, Route::staged);
  EXPECT_FALSE(plan.runs[0].direct_io);
}

TEST(AutoPolicy, StagedForbidsDirectToHost) {
  Scene scene = host_scene();
  scene.settings.policy.value = Policy::staged;
  scene.settings.cache.value = Cache::bypass;
  const Plan plan = scene.plan();
  EXPECT_EQ(plan.runs[0].route, Route::buffered);
  EXPECT_EQ(plan.runs[0].reason, Reason::policy_staged);
  EXPECT_EQ(refusal(plan, Route::direct_host), Reason::policy_forbids);
}

TEST(AutoPolicy, DeviceMemoryIsStaged) {
  const Plan plan = device_scene().plan();
  straightway::Run kept{Route::staged, Reason::device_memory, {0, 1024 * MiB}, MiB};
  kept.cold = ColdWay::kept;
  kept.cold_reason = Reason::cold_kept;
  EXPECT_EQ(plan.runs[0], kept);
  EXPECT_EQ(refusal(plan, Route::nvfs), Reason::nvfs_not_loaded);
  EXPECT_EQ(refusal(plan, Route::p2pdma), Reason::no_peer_memory);
  EXPECT_EQ(refusal(plan, Route::pinned_cache), Reason::not_pinned);
  EXPECT_EQ(refusal(plan, Route::buffered), Reason::space_is_device);
}

TEST(AutoPolicy, PinnedPartsAreReadByTheGpuItself) {
  Scene scene = device_scene();
  scene.pinned = {{0, 4096}, {256 * MiB, 512 * MiB}, {2048 * MiB, 4096}};
  Plan plan = scene.plan();
  ASSERT_EQ(plan.run_count, 3);
  straightway::Run before{Route::staged, Reason::device_memory, {0, 256 * MiB}, MiB};
  before.cold = ColdWay::kept;
  before.cold_reason = Reason::cold_kept;
  EXPECT_EQ(plan.runs[0], before);
  EXPECT_EQ(
      plan.runs[1],
      (straightway::Run{Route::pinned_cache, Reason::pinned, {256 * MiB, 512 * MiB}, 256 * MiB}));
  straightway::Run behind = before;
  behind.file.offset = 768 * MiB;
  EXPECT_EQ(plan.runs[2], behind);
  EXPECT_EQ(refusal(plan, Route::pinned_cache), Reason::none);
  EXPECT_EQ(plan.pin_bytes, 512 * MiB + 8192);
  scene.pinned = {{0, 1024 * MiB}};
  plan = scene.plan();
  EXPECT_EQ(plan.run_count, 1);
  EXPECT_EQ(refusal(plan, Route::staged), Reason::not_preferred);
}

TEST(AutoPolicy, PinsThatDoNotServeAreRefusedWithTheReason) {
  Scene scene = device_scene();
  scene.pinned = {{2048 * MiB, 4096}};
  EXPECT_EQ(refusal(scene.plan(), Route::pinned_cache), Reason::not_pinned);
  scene.pinned = {{0, 1024 * MiB}};
  scene.settings.policy.value = Policy::staged;
  EXPECT_EQ(refusal(scene.plan(), Route::pinned_cache), Reason::policy_forbids);
  scene.settings.policy.value = Policy::automatic;
  scene.request.direction = Direction::write;
  EXPECT_EQ(refusal(scene.plan(), Route::pinned_cache), Reason::pinned_for_reads);
  scene = device_scene();
  scene.pin_lost = true;
  EXPECT_EQ(refusal(scene.plan(), Route::pinned_cache), Reason::pin_lost);
}

TEST(AutoPolicy, PiecesFitASmallRing) {
  Scene scene = device_scene();
  scene.settings.pinned_bytes.value = 300 * KiB;
  EXPECT_EQ(scene.plan().runs[0].segment_bytes, 256 * KiB);
}

TEST(AutoPolicy, DirectToADeviceFailsWithThePreciseReason) {
  const auto reasons = [](auto change) {
    Scene scene = direct_scene();
    scene.machine.routes_built &= static_cast<std::uint8_t>(~(1U << index(Route::nvfs)));
    scene.settings.policy.value = Policy::direct;
    change(scene);
    const Plan plan = scene.plan();
    EXPECT_EQ(plan.run_count, 0);
    EXPECT_EQ(plan.failure, plan.refused[index(Route::nvfs)]);
    EXPECT_EQ(plan.refused[index(Route::staged)], Reason::policy_forbids);
    return std::pair{plan.refused[index(Route::nvfs)], plan.refused[index(Route::p2pdma)]};
  };
  using Both = std::pair<Reason, Reason>;
  const auto old = Reason::kernel_without_p2pdma;
  EXPECT_EQ(reasons([](Scene&) {}), Both(Reason::route_not_built, old));
  EXPECT_EQ(reasons([](Scene& scene) { scene.machine.nvfs_loaded = false; }),
            Both(Reason::nvfs_not_loaded, old));
  EXPECT_EQ(reasons([](Scene& scene) { scene.machine.vendor_library = false; }),
            Both(Reason::vendor_library_absent, old));
  EXPECT_EQ(reasons([](Scene& scene) { scene.machine.kernel = "6.17.0"; }),
            Both(Reason::route_not_built, Reason::not_preferred));
  const auto on = [&](auto change) {
    return reasons([&](Scene& scene) {
      scene.machine.kernel = "6.17.0";
      scene.machine.p2pdma_pages = true;
      scene.machine.nvfs_loaded = false;
      change(scene);
    });
  };
  const auto none = Reason::nvfs_not_loaded;
  EXPECT_EQ(on([](Scene& scene) { scene.file.device_driver = "virtio-blk"; }),
            Both(none, Reason::no_peer_memory));
  EXPECT_EQ(on([](Scene& scene) { scene.file.device.clear(); }),
            Both(none, Reason::no_block_device));
  EXPECT_EQ(on([](Scene& scene) { scene.file.is_network = true; }),
            Both(none, Reason::no_block_device));
}

TEST(AutoPolicy, DirectToADeviceTakesTheRouteThatIsThere) {
  Scene scene = direct_scene();
  scene.settings.policy.value = Policy::direct;
  scene.request.file.offset = 100;
  const Plan plan = scene.plan();
  ASSERT_EQ(plan.run_count, 3);
  EXPECT_EQ(plan.runs[0].route, Route::staged);
  EXPECT_EQ(plan.runs[0].reason, Reason::edge_block);
  EXPECT_EQ(plan.runs[1].route, Route::nvfs);
  EXPECT_EQ(plan.runs[1].file, (FileRange{4096, 1024 * MiB - 4096}));
  EXPECT_EQ(plan.runs[2].file, (FileRange{1024 * MiB, 100}));
}

TEST(AutoPolicy, DeviceMemoryNeedsADevice) {
  Scene scene = device_scene();
  scene.machine.cuda_driver = false;
  scene.machine.cuda_devices = 0;
  for (const Door door : {Door::straightway, Door::kvikio, Door::cufile}) {
    scene.request.door = door;
    EXPECT_EQ(scene.plan().failure, Reason::no_gpu);
    EXPECT_EQ(refusal(scene.plan(), Route::staged), Reason::no_gpu);
  }
  scene = device_scene();
  scene.request.memory.device = 1;
  EXPECT_EQ(scene.plan().failure, Reason::no_gpu);
}

TEST(MakePlan, WorksWithoutFactsAndSettings) {
  Request request;
  request.file.size_bytes = 4096;
  const Plan plan = make_plan(request, {}, nullptr);
  EXPECT_EQ(plan.runs[0].route, Route::buffered);
  EXPECT_EQ(plan.refused[index(Route::direct_host)], Reason::no_direct_io);
}

TEST(MakePlan, PlansAreComparedByValue) {
  const Scene scene = device_scene();
  EXPECT_EQ(scene.plan(), scene.plan());
  Scene other = scene;
  other.machine.kernel = "6.1";
  EXPECT_FALSE(scene.plan() == other.plan());
  Plan without = scene.plan();
  without.file = nullptr;
  EXPECT_FALSE(scene.plan() == without);
}

TEST(AutoPolicy, BypassGoesToTheGpuDirectlyWhereThatIsPossible) {
  Scene scene = direct_scene();
  scene.settings.cache.value = Cache::bypass;
  scene.request.file.offset = 100;
  Plan plan = scene.plan();
  ASSERT_EQ(plan.run_count, 3);
  EXPECT_EQ(plan.runs[1].route, Route::nvfs);
  EXPECT_EQ(plan.runs[1].reason, Reason::cache_bypass);
  EXPECT_EQ(plan.runs[0].route, Route::staged);
  scene.request.direction = Direction::write;
  EXPECT_EQ(scene.plan().runs[1].route, Route::nvfs);
  scene.machine.run_udev = false;
  plan = scene.plan();
  EXPECT_EQ(plan.runs[0].route, Route::staged);
  EXPECT_EQ(plan.refused[index(Route::nvfs)], Reason::no_udev);
}

TEST(AutoPolicy, WhatNvfsLacksIsListedInTheOrderOfMending) {
  Scene scene = direct_scene();
  const auto lacking = [&] { return reasons_lacking(Route::nvfs, scene); };
  EXPECT_EQ(lacking(), Reasons{});
  for (const char* version : {"2.12", "2.25.7", "2.30", "3.0.1", "unknown"}) {
    scene.machine.nvfs_version = version;
    EXPECT_EQ(lacking().size(), version[0] == 'u' ? 1U : 0U) << version;
  }
  for (const char* version : {"2.25.6", "2.11.9", "1.0"}) {
    scene.machine.nvfs_version = version;
    EXPECT_EQ(lacking(), Reasons{Reason::nvfs_bad_version}) << version;
  }
  scene = direct_scene();
  scene.machine.wsl = true;
  scene.machine.nvfs_loaded = false;
  scene.machine.vendor_why_not = "it is too old";
  scene.machine.run_udev = false;
  scene.file.device_driver = "virtio-blk";
  scene.file.vendor_code = 5008;
  scene.file.vendor_copies = true;
  EXPECT_EQ(lacking(), (Reasons{Reason::on_wsl, Reason::nvfs_not_loaded, Reason::vendor_unusable,
                                Reason::no_udev, Reason::no_peer_memory, Reason::vendor_refused,
                                Reason::vendor_copies}));
  scene = direct_scene();
  scene.machine.nvfs_nodes = false;
  EXPECT_EQ(lacking(), Reasons{Reason::nvfs_no_nodes});
  scene = direct_scene();
  scene.machine.p2pdma_pages = true;
  EXPECT_EQ(lacking(), Reasons{});  // the kernel is too old for that
  EXPECT_EQ(vendor_route(scene.machine), Route::nvfs);
  scene.machine.kernel = "6.17.0";
  EXPECT_EQ(lacking(), Reasons{Reason::not_preferred});
  EXPECT_EQ(vendor_route(scene.machine), Route::p2pdma);
}

TEST(AutoPolicy, WhatP2pdmaLacksIsListedInTheOrderOfMending) {
  Scene scene = p2pdma_scene();
  const auto lacking = [&] { return reasons_lacking(Route::p2pdma, scene); };
  EXPECT_EQ(lacking(), Reasons{});
  for (const auto& [kernel, reason] : {std::pair{"6.1.9", Reason::kernel_without_p2pdma},
                                       {"", Reason::kernel_without_p2pdma},
                                       {"6.16.0-rc2", Reason::kernel_breaks_p2pdma}}) {
    scene.machine.kernel = kernel;
    EXPECT_EQ(lacking(), Reasons{reason}) << kernel;
  }
  scene = p2pdma_scene();
  scene.machine.vendor_version = 1120;
  EXPECT_EQ(lacking(), Reasons{Reason::vendor_unusable});
  scene.machine.vendor_version = 1130;
  EXPECT_EQ(lacking(), Reasons{});
  scene.machine.nvfs_loaded = true;  // and switched on: it goes before
  EXPECT_EQ(lacking(), Reasons{});
  scene.machine.p2pdma_pages = false;
  EXPECT_EQ(lacking(), Reasons{Reason::not_published});
  scene.machine.nvfs_nodes = true;
  EXPECT_EQ(lacking(), Reasons{Reason::not_preferred});
  scene.machine = p2pdma_scene().machine;
  scene.machine.wsl = true;
  scene.machine.kernel = "5.15.153";
  scene.machine.p2pdma_pages = false;
  scene.machine.vendor_library = false;
  scene.machine.vendor_why_not = "it is too old";
  scene.machine.run_udev = false;
  scene.machine.routes_built = 0;
  scene.file.filesystem = "btrfs";
  scene.file.vendor_code = 5008;
  scene.file.vendor_copies = true;
  EXPECT_EQ(lacking(),
            (Reasons{Reason::on_wsl, Reason::kernel_without_p2pdma, Reason::vendor_library_absent,
                     Reason::vendor_unusable, Reason::no_udev, Reason::no_peer_memory,
                     Reason::vendor_refused, Reason::vendor_copies, Reason::route_not_built}));
  scene.machine.vendor_library = true;  // then they were looked for
  EXPECT_EQ(lacking()[2], Reason::not_published);
}

TEST(AutoPolicy, P2pdmaIsSwitchedOnWhereNvidiaFsDoesNotServeOrTheUserAsks) {
  MachineFacts machine = direct_scene().machine;
  EXPECT_FALSE(wants_p2pdma(machine, false));
  EXPECT_TRUE(wants_p2pdma(machine, true));
  machine.nvfs_version = "2.25.6";
  EXPECT_TRUE(wants_p2pdma(machine, false));
  machine.nvfs_version = "2.28.4";
  EXPECT_FALSE(wants_p2pdma(machine, false));
  machine.nvfs_nodes = false;
  EXPECT_TRUE(wants_p2pdma(machine, false));
  EXPECT_TRUE(wants_p2pdma({}, false));
}

TEST(AutoPolicy, P2pdmaIsTakenAsNvfsIs) {
  Scene scene = p2pdma_scene();
  scene.request.file.offset = 100;
  EXPECT_EQ(scene.plan().runs[0].route, Route::staged);  // to be kept in the page cache
  EXPECT_EQ(refusal(scene.plan(), Route::p2pdma), Reason::not_preferred);
  scene.settings.cache.value = Cache::bypass;
  for (const Policy policy : {Policy::automatic, Policy::direct}) {
    scene.settings.policy.value = policy;
    const Plan plan = scene.plan();
    ASSERT_EQ(plan.run_count, 3);
    EXPECT_EQ(plan.runs[1].route, Route::p2pdma);
    EXPECT_EQ(plan.runs[1].segment_bytes, 4 * MiB);
    EXPECT_TRUE(plan.runs[1].direct_io);
    EXPECT_EQ(plan.runs[0].route, Route::staged);
    EXPECT_EQ(plan.runs[0].reason, Reason::edge_block);
    EXPECT_EQ(refusal(plan, Route::nvfs), Reason::nvfs_not_loaded);
  }
  scene.settings.policy.value = Policy::staged;
  EXPECT_EQ(refusal(scene.plan(), Route::p2pdma), Reason::policy_forbids);
}

}  // namespace
}  // namespace straightway::plan
