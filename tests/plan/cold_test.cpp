#include "plan/cold.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/plan_scenes.hpp"

namespace straightway::plan {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr std::uint64_t gib = std::uint64_t{1} << 30;

Scene with(Cache cache, Scene scene = host_scene()) {
  scene.settings.cache = {cache, Origin::call};
  scene.file.dontcache = true;
  return scene;
}

Run only_run(const Scene& scene) {
  const Plan plan = scene.plan();
  EXPECT_EQ(plan.run_count, 1);
  return plan.runs[0];
}

TEST(DecideCold, KeepReadsAheadWhateverTheMemory) {
  const straightway::Run run = only_run(with(Cache::keep));
  EXPECT_EQ(run.cold, ColdWay::kept);
  EXPECT_EQ(run.cold_reason, Reason::cold_kept);
  EXPECT_EQ(run.route, Route::buffered);
  EXPECT_EQ(only_run(with(Cache::keep, device_scene())).cold, ColdWay::kept);
}

// What counts is the memory that can be had (MemAvailable), however little of it is free.
TEST(DecideCold, G4_AutoKeepsWhatFitsWellWithinTheMemoryToSpare) {
  Scene scene = with(Cache::automatic);
  scene.request.spare_memory_bytes = 100 * gib;
  EXPECT_EQ(only_run(scene).cold, ColdWay::kept);
  scene.request.spare_memory_bytes = 2 * gib;
  EXPECT_EQ(only_run(scene).cold, ColdWay::kept);
  scene.request.spare_memory_bytes = 2 * gib - 2;
  EXPECT_EQ(only_run(scene).cold, ColdWay::dropped);
  scene.request.spare_memory_bytes = 0;
  EXPECT_EQ(only_run(scene).cold, ColdWay::dropped);
  scene.request.spare_memory_bytes = UINT64_MAX;  // not known: as everybody does
  EXPECT_EQ(only_run(scene).cold, ColdWay::kept);
  scene.request.spare_memory_bytes = 0;
  scene.resize(64 * mib);  // so little is kept without a look
  EXPECT_EQ(only_run(scene).cold, ColdWay::kept);
}

TEST(DecideCold, DropTakesTheFirstWayThatTheFileSystemHas) {
  Scene scene = with(Cache::drop);
  EXPECT_EQ(only_run(scene).cold, ColdWay::dropped);
  scene.file.dontcache = false;
  straightway::Run run = only_run(scene);
  EXPECT_EQ(run.cold, ColdWay::direct);
  EXPECT_EQ(run.cold_align_bytes, 4096U);
  scene.request.memory.address += 2;  // O_DIRECT asks for 4 bytes
  EXPECT_EQ(only_run(scene).cold, ColdWay::trimmed);
  scene.request.memory.address -= 2;
  scene.settings.policy = {Policy::staged, Origin::call};  // rules direct-host out
  EXPECT_EQ(only_run(scene).cold, ColdWay::trimmed);
  scene.settings.policy = {};
  scene.file.direct_offset_align_bytes = 0;
  run = only_run(scene);
  EXPECT_EQ(run.cold, ColdWay::trimmed);
  EXPECT_EQ(run.cold_reason, Reason::cold_trimmed);
}

TEST(DecideCold, SmallReadsAndWritesLookNothingUp) {
  Scene scene = with(Cache::drop);
  scene.resize(256 << 10);
  EXPECT_EQ(only_run(scene).cold, ColdWay::same);
  scene = with(Cache::automatic);
  scene.request.direction = Direction::write;
  EXPECT_EQ(only_run(scene).cold, ColdWay::same);
}

TEST(DecideCold, NetworkOverlayAndMemoryFileSystemsAreReadPlainly) {
  for (const char* filesystem : {"overlay", "tmpfs", "nfs4"}) {
    Scene scene = with(Cache::drop);
    scene.file.filesystem = filesystem;
    scene.file.is_network = scene.file.filesystem == "nfs4";
    const straightway::Run run = only_run(scene);
    EXPECT_EQ(run.cold, ColdWay::same) << filesystem;
    EXPECT_EQ(run.cold_reason, Reason::residency_unknown) << filesystem;
    EXPECT_FALSE(run.direct_io) << filesystem;
  }
}

TEST(DecideCold, BypassIsDirectFromTheStart) {
  const straightway::Run run = only_run(with(Cache::bypass));
  EXPECT_EQ(run.route, Route::direct_host);
  EXPECT_EQ(run.cold, ColdWay::same);
}

TEST(DecideCold, TheTextGivesTheRule) {
  Scene scene = with(Cache::automatic);
  scene.request.spare_memory_bytes = gib;
  EXPECT_THAT(scene.plan().to_text(),
              HasSubstr("decided per MiB by what is in it: hot from it; cold: more than half of "
                        "the memory to spare, so the page cache lets go of them at once"));
  EXPECT_THAT(scene.plan().to_json(), HasSubstr("\"way\": \"dropped\""));
  Plan plan = with(Cache::keep).plan();
  EXPECT_THAT(plan.to_text(), HasSubstr("cold: kept in the page cache"));
  plan.first_window = {48 * mib, 16 * mib, 0};
  EXPECT_THAT(plan.to_text(), HasSubstr("of its start: 48 MiB hot, 16 MiB cold"));
  plan.first_window = {0, 0, 64 * mib};
  EXPECT_THAT(plan.to_text(), HasSubstr("the kernel does not tell"));
}

TEST(ResidencyOf, EveryStateFromItsLook) {
  EXPECT_EQ(residency_of({false, 0}, mib), Residency::unknown);
  EXPECT_EQ(residency_of({true, 0}, mib), Residency::cold);
  EXPECT_EQ(residency_of({true, 4096}, mib), Residency::partly);
  EXPECT_EQ(residency_of({true, mib}, mib), Residency::hot);
}

Run run_with(ColdWay cold, Route route = Route::buffered) {
  straightway::Run run;
  run.route = route;
  run.reason = Reason::host_memory;
  run.file = {0, gib};
  run.segment_bytes = mib;
  run.cold = cold;
  run.cold_reason = Reason::cold_direct;
  run.cold_align_bytes = 4096;
  return run;
}

TEST(Resolve, HotAndUnknownGoAsTheRunSays) {
  for (const auto cold : {ColdWay::kept, ColdWay::dropped, ColdWay::direct, ColdWay::trimmed}) {
    for (const auto found : {Residency::hot, Residency::unknown}) {
      const Way way = resolve(run_with(cold), {mib, mib}, found);
      EXPECT_EQ(way.route, Route::buffered);
      EXPECT_EQ(way.reason, Reason::host_memory);
      EXPECT_FALSE(way.direct_io || way.dontcache || way.trim);
      EXPECT_FALSE(fills_cache(way, found));
    }
  }
}

TEST(Resolve, ColdGoesItsOwnWay) {
  Way way = resolve(run_with(ColdWay::kept), {mib, mib}, Residency::cold);
  EXPECT_FALSE(way.direct_io || way.dontcache || way.trim);
  EXPECT_TRUE(fills_cache(way, Residency::cold));
  EXPECT_TRUE(fills_cache(way, Residency::partly));
  way = resolve(run_with(ColdWay::dropped), {mib, mib}, Residency::cold);
  EXPECT_TRUE(way.dontcache && way.trim);
  way = resolve(run_with(ColdWay::trimmed), {mib, mib}, Residency::cold);
  EXPECT_TRUE(way.trim && !way.dontcache);
  way = resolve(run_with(ColdWay::direct), {mib, mib}, Residency::cold);
  EXPECT_EQ(way.route, Route::direct_host);
  EXPECT_TRUE(way.direct_io);
  EXPECT_EQ(way.align_bytes, 4096U);
  EXPECT_EQ(way.reason, Reason::cold_direct);
  way = resolve(run_with(ColdWay::direct, Route::staged), {mib + 1, 7}, Residency::cold);
  EXPECT_EQ(way.route, Route::staged);  // the ring takes the envelope
  EXPECT_TRUE(way.direct_io);
}

// Some of its pages may be dirty, or others' that must stay.
TEST(Resolve, WhatIsCachedInPartNeverGoesDirectAndIsNeverDropped) {
  for (const auto cold : {ColdWay::dropped, ColdWay::direct, ColdWay::trimmed}) {
    const Way way = resolve(run_with(cold), {mib, mib}, Residency::partly);
    EXPECT_FALSE(way.direct_io || way.trim);
  }
}

TEST(Resolve, AnEdgeOfABlockIsNotReadDirectIntoHostMemory) {
  const Way way = resolve(run_with(ColdWay::direct), {mib + 100, 8192}, Residency::cold);
  EXPECT_EQ(way.route, Route::buffered);
  EXPECT_FALSE(way.direct_io);
  EXPECT_TRUE(way.trim);
}

TEST(DecideCold, BytesNotToBeKeptGoToTheGpuDirectlyWhereThatIsPossible) {
  Scene scene = with(Cache::drop, direct_scene());
  const straightway::Run run = only_run(scene);
  EXPECT_EQ(run.route, Route::staged);
  EXPECT_EQ(run.cold, ColdWay::nvfs);
  EXPECT_EQ(run.cold_reason, Reason::direct_available);
  EXPECT_EQ(only_run(with(Cache::keep, direct_scene())).cold, ColdWay::kept);
  scene.machine.nvfs_loaded = false;
  EXPECT_EQ(only_run(scene).cold, ColdWay::dropped);
  scene = with(Cache::automatic, direct_scene());
  EXPECT_EQ(only_run(scene).cold, ColdWay::kept);
  scene.request.spare_memory_bytes = gib;
  EXPECT_EQ(only_run(scene).cold, ColdWay::nvfs);
  scene.settings.policy.value = Policy::staged;
  EXPECT_EQ(only_run(scene).cold, ColdWay::dropped);
  scene = with(Cache::drop, p2pdma_scene());
  EXPECT_EQ(only_run(scene).cold, ColdWay::nvfs);
  EXPECT_EQ(scene.plan().to_json().find("\"way\": \"nvfs\""), std::string::npos);
  EXPECT_NE(scene.plan().to_json().find("\"way\": \"p2pdma\""), std::string::npos);
  EXPECT_EQ(only_run(scene).cold_reason, Reason::direct_available);
  scene.machine.kernel = "6.16.1";
  EXPECT_NE(only_run(scene).cold, ColdWay::nvfs);
}

TEST(Resolve, ColdBlocksGoToTheGpuOthersThroughTheRing) {
  auto run = run_with(ColdWay::nvfs, Route::staged);
  EXPECT_EQ(resolve(run, {mib, mib}, Residency::cold, Route::p2pdma).route, Route::p2pdma);
  EXPECT_EQ(resolve(run, {mib, mib}, Residency::hot, Route::p2pdma).route, Route::staged);
  run.cold_reason = Reason::direct_available;
  Way way = resolve(run, {mib, mib}, Residency::cold);
  EXPECT_EQ(way.route, Route::nvfs);
  EXPECT_TRUE(way.direct_io);
  EXPECT_EQ(way.align_bytes, 4096U);
  EXPECT_EQ(way.reason, Reason::direct_available);
  for (const auto found : {Residency::hot, Residency::partly, Residency::unknown}) {
    way = resolve(run, {mib, mib}, found);
    EXPECT_EQ(way.route, Route::staged);
    EXPECT_FALSE(way.direct_io || way.trim);
  }
  way = resolve(run, {mib, 100}, Residency::cold);  // the end of the file
  EXPECT_EQ(way.route, Route::staged);
  EXPECT_TRUE(way.trim);
}

}  // namespace
}  // namespace straightway::plan
