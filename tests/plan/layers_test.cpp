// The rules of the front layer and of the cuFile layer, with the published examples.
#include <gtest/gtest.h>

#include <vector>

#include "plan/cut.hpp"
#include "plan/planner.hpp"
#include "tests/plan/plan_scenes.hpp"

namespace straightway::plan {
namespace {

constexpr std::uint64_t KiB = 1024;
constexpr std::uint64_t MiB = 1024 * KiB;
constexpr std::uint64_t GiB = 1024 * MiB;

std::vector<std::uint64_t> sizes(const Cut& cut) {
  std::vector<std::uint64_t> result;
  for (std::uint64_t i = 0; i < cut.count; ++i) result.push_back(cut.piece(i).size_bytes);
  return result;
}

std::vector<std::uint64_t> parts_kb(std::uint64_t size_kb, bool registered,
                                    const CufileSettings& settings = {}) {
  std::vector<std::uint64_t> result =
      sizes(cufile_parts({0, size_kb * KiB}, SpaceKind::cuda, registered, settings));
  for (std::uint64_t& size : result) size /= KiB;
  return result;
}

using Kb = std::vector<std::uint64_t>;

TEST(CufileParts, RegisteredBuffersAreCutAsMeasured) {
  EXPECT_EQ(parts_kb(8192, true), (Kb{8192}));
  EXPECT_EQ(parts_kb(8196, true), (Kb{8192, 4}));
  EXPECT_EQ(parts_kb(32768, true), (Kb{8192, 8192, 8192, 8192}));
  EXPECT_EQ(parts_kb(32772, true), (Kb{8256, 8256, 8256, 8004}));
  EXPECT_EQ(parts_kb(33000, true), (Kb{8256, 8256, 8256, 8232}));
}

TEST(CufileParts, UnregisteredBuffersAreCutAsMeasured) {
  EXPECT_EQ(parts_kb(8196, false), (Kb{8196}));
  EXPECT_EQ(parts_kb(9 * 1024, false), (Kb{9216}));
  EXPECT_EQ(parts_kb(10236, false), (Kb{8192, 2044}));
  EXPECT_EQ(parts_kb(17 * 1024, false), (Kb{8192, 9216}));
  EXPECT_EQ(parts_kb(26 * 1024, false), (Kb{8192, 8192, 8192, 2048}));
  EXPECT_EQ(parts_kb(32772, false), (Kb{8193, 8193, 8193, 8193}));
  EXPECT_EQ(parts_kb(65540, false), (Kb{16385, 16385, 16385, 16385}));
}

TEST(CufileParts, UnregisteredBuffersWithASmallThreshold) {
  CufileSettings settings;
  settings.min_io_threshold_size_kb.value = 1024;
  settings.max_request_parallelism.value = 8;
  EXPECT_EQ(parts_kb(2048, false, settings), (Kb{2048}));
  EXPECT_EQ(parts_kb(2052, false, settings), (Kb{1024, 1028}));
  EXPECT_EQ(parts_kb(6 * 1024, false, settings), (Kb{1024, 1024, 1024, 1024, 2048}));
}

TEST(CufileParts, HostMemoryAndSequentialSettingsMakeOnePart) {
  EXPECT_EQ(sizes(cufile_parts({0, 80 * MiB}, SpaceKind::host, false, {})), (Kb{80 * MiB}));
  CufileSettings settings;
  settings.parallel_io.value = false;
  EXPECT_EQ(parts_kb(81920, true, settings), (Kb{81920}));
  settings = {};
  settings.max_io_threads.value = 0;
  EXPECT_EQ(parts_kb(81920, false, settings), (Kb{81920}));
  settings = {};
  settings.max_request_parallelism.value = 0;
  EXPECT_EQ(parts_kb(81920, true, settings), (Kb{81920}));
}

TEST(PublishedExamples, DefaultTaskSizeMakes256DirectReads) {
  Scene scene = direct_scene();
  scene.request.door = Door::kvikio;
  const Plan plan = scene.plan();
  EXPECT_TRUE(plan.front.to_cufile);
  EXPECT_EQ(plan.front.tasks, (Cut{0, GiB, 4 * MiB, 256}));
  EXPECT_EQ(plan.cufile.counters, (LayerCounters{.n = 256, .nvfs = 256, .p2pdma = 0, .posix = 0}));
  EXPECT_EQ(plan.runs[0].route, Route::nvfs);
  EXPECT_NE(plan.to_text().find("n=256 nvfs=256 p2pdma=0 posix=0"), std::string::npos);
}

TEST(PublishedExamples, ForcedCompatStillMakes256ReadsAllPosix) {
  Scene scene = direct_scene();
  scene.request.door = Door::kvikio;
  scene.settings.front.compat_mode = {CompatMode::off, Origin::environment};
  scene.settings.cufile.force_compat_mode = {true, Origin::environment};
  const Plan plan = scene.plan();
  EXPECT_TRUE(plan.front.to_cufile);
  EXPECT_EQ(plan.cufile.counters, (LayerCounters{.n = 256, .nvfs = 0, .p2pdma = 0, .posix = 256}));
  EXPECT_EQ(plan.cufile.reason, Reason::force_compat);
  EXPECT_EQ(plan.runs[0].route, Route::staged);
  EXPECT_EQ(plan.refused[index(Route::nvfs)], Reason::force_compat);
}

TEST(PublishedExamples, CompatModeOnKeepsCufileOutOfIt) {
  Scene scene = direct_scene();
  scene.request.door = Door::kvikio;
  scene.settings.front.compat_mode = {CompatMode::on, Origin::environment};
  const Plan plan = scene.plan();
  EXPECT_FALSE(plan.front.to_cufile);
  EXPECT_FALSE(plan.cufile.used);
  EXPECT_EQ(plan.cufile.counters, LayerCounters{});
  EXPECT_EQ(plan.front.tasks.count, 256U);
  EXPECT_EQ(plan.runs[0].route, Route::staged);
  EXPECT_EQ(plan.runs[0].reason, Reason::compat_mode_on);
}

TEST(PublishedExamples, OneGibibyteTaskIsOneRequestInFourParts) {
  Scene scene = direct_scene();
  scene.request.door = Door::kvikio;
  scene.settings.front.task_size_bytes = {GiB, Origin::environment};
  for (const bool registered : {false, true}) {
    scene.request.registered = registered;
    const Plan plan = scene.plan();
    EXPECT_EQ(plan.front.tasks.count, 1U);
    EXPECT_EQ(plan.cufile.parts, (Cut{0, GiB, 256 * MiB, 4}));
    EXPECT_EQ(plan.cufile.counters.n, 4U);
  }
}

TEST(PublishedExamples, SixteenMebibytesAreTwoParts) {
  Scene scene = direct_scene();
  scene.request.door = Door::kvikio;
  scene.settings.front.task_size_bytes = {GiB, Origin::environment};
  scene.resize(16 * MiB);
  for (const bool registered : {false, true}) {
    scene.request.registered = registered;
    EXPECT_EQ(scene.plan().cufile.parts, (Cut{0, 16 * MiB, 8 * MiB, 2}));
  }
}

TEST(FrontLayer, ThresholdIsStrictAndCountsInEveryMode) {
  for (const CompatMode mode : {CompatMode::off, CompatMode::on, CompatMode::automatic}) {
    Scene scene = direct_scene();
    scene.request.door = Door::kvikio;
    scene.settings.front.compat_mode.value = mode;
    scene.resize(16 * KiB - 1);
    Plan plan = scene.plan();
    EXPECT_EQ(plan.front.reason, Reason::below_gds_threshold);
    EXPECT_TRUE(plan.front.on_caller_thread);
    EXPECT_EQ(plan.front.tasks.count, 1U);
    scene.resize(16 * KiB);
    plan = scene.plan();
    EXPECT_EQ(plan.front.to_cufile, mode != CompatMode::on);
    EXPECT_FALSE(plan.front.on_caller_thread);
  }
}

TEST(FrontLayer, HostMemoryIsPosixInTasks) {
  Scene scene = host_scene();
  scene.request.door = Door::kvikio;
  scene.settings.front.compat_mode.value = CompatMode::off;
  scene.resize(9 * MiB);
  const Plan plan = scene.plan();
  EXPECT_EQ(plan.front.reason, Reason::front_host_memory);
  EXPECT_EQ(sizes(plan.front.tasks), (Kb{4 * MiB, 4 * MiB, MiB}));
  EXPECT_EQ(plan.runs[0].route, Route::buffered);
}

TEST(FrontLayer, E11_AutoDependsOnWhatIsThereAtRunTime) {
  const auto to_cufile = [](bool library, bool udev, bool wsl) {
    Scene scene = device_scene();
    scene.request.door = Door::kvikio;
    scene.machine.vendor_library = library;
    scene.machine.run_udev = udev;
    scene.machine.wsl = wsl;
    const Plan plan = scene.plan();
    EXPECT_EQ(plan.failure, Reason::none);
    EXPECT_EQ(plan.front.reason,
              plan.front.to_cufile ? Reason::front_tasks : Reason::compat_mode_auto);
    return plan.front.to_cufile;
  };
  EXPECT_TRUE(to_cufile(true, true, false));
  EXPECT_FALSE(to_cufile(false, true, false));
  EXPECT_FALSE(to_cufile(true, false, false));
  EXPECT_FALSE(to_cufile(true, true, true));
}

TEST(FrontLayer, E14_NoDirectIoIsSilentUnderAutoAndAnErrorUnderOff) {
  Scene scene = direct_scene();
  scene.request.door = Door::kvikio;
  scene.file.direct_offset_align_bytes = 0;
  EXPECT_EQ(scene.plan().front.reason, Reason::compat_mode_auto);
  EXPECT_EQ(scene.plan().failure, Reason::none);
  scene.settings.front.compat_mode.value = CompatMode::off;
  EXPECT_EQ(scene.plan().failure, Reason::no_direct_io);
}

TEST(CufileLayer, WithoutADirectPathAllowCompatDecides) {
  Scene scene = device_scene();
  scene.request.door = Door::cufile;
  scene.resize(16 * MiB);
  Plan plan = scene.plan();
  EXPECT_EQ(plan.cufile.reason, Reason::allow_compat);
  EXPECT_EQ(plan.cufile.counters, (LayerCounters{.n = 2, .nvfs = 0, .p2pdma = 0, .posix = 2}));
  scene.settings.cufile.allow_compat_mode = {false, Origin::file};
  plan = scene.plan();
  EXPECT_TRUE(plan.cufile.refused);
  EXPECT_EQ(plan.failure, Reason::refused_compat);
  EXPECT_EQ(plan.run_count, 0);
  scene.settings.cufile.force_compat_mode = {true, Origin::environment};
  EXPECT_EQ(scene.plan().failure, Reason::none);
}

TEST(CufileLayer, P2pdmaGoesBeforeNvfsWhereSwitchedOn) {
  Scene scene = direct_scene();
  scene.request.door = Door::cufile;
  scene.machine.kernel = "6.17.4";
  EXPECT_EQ(scene.plan().cufile.counters.nvfs, 4U);
  scene.settings.cufile.use_pci_p2pdma.value = true;
  EXPECT_EQ(scene.plan().cufile.counters.nvfs, 4U);  // the vendor's library goes by nvidia-fs
  scene.machine.p2pdma_pages = true;
  EXPECT_EQ(scene.plan().cufile.counters.p2pdma, 4U);
  EXPECT_EQ(scene.plan().runs[0].route, Route::p2pdma);
}

TEST(CufileLayer, P2pdmaIsNotTakenUnasked) {
  Scene scene = p2pdma_scene();
  scene.request.door = Door::cufile;
  EXPECT_EQ(scene.plan().cufile.counters.posix, 4U);
  EXPECT_EQ(scene.plan().refused[index(Route::p2pdma)], Reason::allow_compat);
  scene.settings.cufile.use_pci_p2pdma.value = true;
  EXPECT_EQ(scene.plan().cufile.counters.p2pdma, 4U);
  scene.machine.kernel = "6.16.3";
  EXPECT_EQ(scene.plan().cufile.counters.posix, 4U);
  scene.settings.cufile.allow_compat_mode.value = false;
  EXPECT_EQ(scene.plan().failure, Reason::refused_compat);
  EXPECT_EQ(scene.plan().refused[index(Route::p2pdma)], Reason::kernel_breaks_p2pdma);
}

TEST(FrontLayer, P2pdmaThatTheVendorsLibraryHasOnCountsAsAsked) {
  Scene scene = direct_scene();
  scene.request.door = Door::kvikio;
  scene.machine.kernel = "6.17.4";
  scene.machine.p2pdma_pages = true;  // by cufile.json, beside nvidia-fs
  EXPECT_EQ(scene.plan().runs[0].route, Route::p2pdma);
  EXPECT_EQ(scene.plan().cufile.counters.p2pdma, 256U);
  scene.request.door = Door::cufile;  // whose settings are the file's, or the program's word
  EXPECT_EQ(scene.plan().runs[0].route, Route::staged);
  scene.request.door = Door::kvikio;
  scene.machine.nvfs_loaded = false;  // then it is Straightway that switches it on
  EXPECT_EQ(scene.plan().runs[0].route, Route::staged);
}

std::vector<std::uint64_t> calls_kb(const Plan& plan) {
  std::vector<std::uint64_t> result;
  for (std::size_t i = 0; i < plan.run_count; ++i) {
    if (plan.runs[i].route != Route::nvfs) continue;
    for (std::uint64_t k = 0; k < segment_count(plan.runs[i]); ++k) {
      result.push_back(segment(plan.runs[i], k).payload.size_bytes / KiB);
    }
  }
  return result;
}

TEST(CufileLayer, EachPartIsOneCallOfTheVendorsLibrary) {
  Scene scene = direct_scene();
  scene.request.door = Door::cufile;
  for (const std::uint64_t offset : {std::uint64_t{0}, 5 * MiB + 4096}) {
    for (const std::uint64_t size_kb : {4UL, 9216UL, 17408UL, 26624UL, 33000UL, 73728UL}) {
      for (const bool registered : {false, true}) {
        scene.resize(size_kb * KiB);
        scene.request.file.offset = offset;
        scene.request.file_size_bytes = offset + size_kb * KiB;
        scene.request.registered = registered;
        const auto parts = sizes(cufile_parts({offset, size_kb * KiB}, SpaceKind::cuda, registered,
                                              scene.settings.cufile));
        const auto calls = calls_kb(scene.plan());
        ASSERT_EQ(calls.size(), parts.size()) << size_kb << " at " << offset;
        EXPECT_EQ(calls.front(), (parts.front() + 4095) / 4096 * 4);  // calls are whole blocks
        EXPECT_EQ(scene.plan().cufile.counters.nvfs, calls.size());
      }
    }
  }
}

TEST(CufileLayer, TasksAreCutEachByItself) {
  Scene scene = direct_scene();
  scene.request.door = Door::kvikio;
  scene.settings.front.task_size_bytes = {17 * MiB, Origin::environment};
  scene.resize(39 * MiB);
  EXPECT_EQ(calls_kb(scene.plan()), (Kb{8192, 9216, 8192, 9216, 5120}));
  EXPECT_EQ(scene.plan().cufile.counters.n, 5U);
  scene.machine.vendor_cuts = true;
  EXPECT_EQ(calls_kb(scene.plan()), (Kb{17408, 17408, 5120}));
}

TEST(CufileLayer, ALibraryThatCutsByItselfGetsRequestsWholeUpToOneGiB) {
  Scene scene = direct_scene();
  scene.request.door = Door::cufile;
  scene.machine.vendor_cuts = true;
  EXPECT_EQ(calls_kb(scene.plan()), (Kb{GiB / KiB}));
  EXPECT_EQ(scene.plan().cufile.counters.n, 4U);
  scene.resize(GiB + 8 * KiB);
  EXPECT_EQ(calls_kb(scene.plan()), (Kb{GiB / KiB, 8}));
}

TEST(CufileLayer, ACallIsNoLargerThanOneGiB) {
  Scene scene = direct_scene();
  scene.request.door = Door::cufile;
  scene.settings.cufile.parallel_io.value = false;
  scene.resize(2 * GiB + 4096);
  EXPECT_EQ(calls_kb(scene.plan()), (Kb{GiB / KiB, GiB / KiB, 4}));
  EXPECT_EQ(scene.plan().cufile.counters.n, 1U);
}

TEST(CufileLayer, HostMemoryIsOnePieceAndMovesNoCounter) {
  Scene scene = host_scene();
  scene.request.door = Door::cufile;
  const Plan plan = scene.plan();
  EXPECT_EQ(plan.cufile.reason, Reason::cufile_host_memory);
  EXPECT_EQ(plan.cufile.parts.count, 1U);
  EXPECT_EQ(plan.cufile.counters, LayerCounters{});
}

TEST(CufileLayer, UnalignedPartsOfADirectWriteCountAsPosix) {
  Scene scene = direct_scene();
  scene.request.door = Door::cufile;
  scene.request.direction = Direction::write;
  scene.request.registered = true;
  scene.resize(16 * MiB - 1);  // 8 MiB aligned, 8 MiB - 1 not
  EXPECT_EQ(scene.plan().cufile.counters,
            (LayerCounters{.n = 2, .nvfs = 1, .p2pdma = 0, .posix = 1}));
  scene.request.file.offset = 512;
  const Plan plan = scene.plan();
  EXPECT_EQ(plan.cufile.counters, (LayerCounters{.n = 2, .nvfs = 0, .p2pdma = 0, .posix = 2}));
  EXPECT_EQ(plan.cufile.reason, Reason::unaligned);
}

// Counted one by one, the aligned parts are what the closed form says.
TEST(CufileLayer, AlignedPartsOfOddTasksAreCountedExactly) {
  for (const std::uint64_t task :
       {std::uint64_t{5000}, 3 * KiB, 6 * KiB, 12 * KiB, 20 * KiB + 512}) {
    for (const std::uint64_t offset : {std::uint64_t{0}, 1 * KiB, 4 * KiB, std::uint64_t{712}}) {
      Scene scene = direct_scene();
      scene.request.door = Door::kvikio;
      scene.request.direction = Direction::write;
      scene.settings.front.task_size_bytes.value = task;
      scene.settings.cufile.min_io_threshold_size_kb.value = 4;
      scene.request.registered = true;
      scene.resize(600 * KiB + 100);
      scene.request.file.offset = offset;
      const Plan plan = scene.plan();
      LayerCounters expected;
      for (std::uint64_t i = 0; i < plan.front.tasks.count; ++i) {
        const Cut parts =
            cufile_parts(plan.front.tasks.piece(i), SpaceKind::cuda, true, scene.settings.cufile);
        for (std::uint64_t k = 0; k < parts.count; ++k) {
          const FileRange part = parts.piece(k);
          const bool aligned = part.offset % 4096 == 0 && part.size_bytes % 4096 == 0;
          ++expected.n;
          ++(aligned ? expected.nvfs : expected.posix);
        }
      }
      EXPECT_EQ(plan.cufile.counters, expected) << "task " << task << " offset " << offset;
    }
  }
}

}  // namespace
}  // namespace straightway::plan
