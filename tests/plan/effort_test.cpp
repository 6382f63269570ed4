#include "plan/effort.hpp"

#include <gtest/gtest.h>

#include "tests/plan/plan_scenes.hpp"

namespace straightway::plan {
namespace {

std::string described(const Scene& scene) {
  return describe(effort_of(scene.plan()), scene.settings);
}

TEST(Effort, TheCpusBoundTheCopiers) {
  auto scene = host_scene();
  scene.machine.cpus = 6;
  EXPECT_EQ(effort_of(scene.plan()), (Effort{6, CopierBound::cpus, 0}));
  EXPECT_EQ(described(scene), "at most 6: the CPUs that this process may use");
  scene.machine.quota_cpus = 6;
  EXPECT_EQ(effort_of(scene.plan()), (Effort{6, CopierBound::quota, 0}));
  scene.machine.quota_cpus = 8;
  EXPECT_EQ(effort_of(scene.plan()).bound, CopierBound::cpus) << "the affinity is tighter";
  scene.machine.cpus = 64;
  EXPECT_EQ(effort_of(scene.plan()), (Effort{16, CopierBound::link, 0}));
}

TEST(Effort, WhatNeighboursLeaveIsNoSetting) {
  auto scene = host_scene();
  scene.machine.cpus = 16;
  scene.settings.threads = {8, Origin::built_in};
  EXPECT_EQ(effort_of(scene.plan()), (Effort{8, CopierBound::neighbours, 0}));
  EXPECT_EQ(described(scene),
            "at most 8: the CPUs that other programs of this user leave, which copy at this time");
}

TEST(Effort, TheCpusAreSharedFairly) {
  EXPECT_EQ(fair_copiers(16, 16, {}), 16U);
  EXPECT_EQ(fair_copiers(16, 16, {16}), 8U);
  EXPECT_EQ(fair_copiers(16, 16, {16, 16}), 5U);
  EXPECT_EQ(fair_copiers(16, 16, {2}), 14U) << "who wants little leaves the rest";
  EXPECT_EQ(fair_copiers(16, 16, {16, 1, 3}), 6U);
  EXPECT_EQ(fair_copiers(16, 64, {16, 16, 16}), 16U) << "there is enough for all";
  EXPECT_EQ(fair_copiers(2, 16, {16}), 2U) << "who wants little gets it";
  EXPECT_EQ(fair_copiers(4, 2, std::vector<std::uint32_t>(100, 1024)), 1U) << "never none";
  EXPECT_EQ(fair_copiers(16, 16, std::vector<std::uint32_t>(3, 1)), 13U);
  EXPECT_EQ(fair_copiers(1, 0, {0}), 1U);
}

TEST(Effort, ASettingIsNamedWithItsOrigin) {
  auto scene = device_scene();
  scene.settings.threads = {3, Origin::environment};
  scene.settings.pinned_bytes = {std::uint64_t{8} << 20, Origin::api};
  EXPECT_EQ(effort_of(scene.plan()), (Effort{3, CopierBound::setting, std::uint64_t{8} << 20}));
  EXPECT_EQ(described(scene),
            "at most 3: threads=3 (environment); at most 8 MiB of pinned memory (pinned_bytes, "
            "api)");
}

TEST(Effort, WhatOneThreadDoesSaysSo) {
  auto scene = device_scene();
  scene.machine.cpus = 8;
  EXPECT_EQ(effort_of(scene.plan()), (Effort{8, CopierBound::cpus, std::uint64_t{64} << 20}));
  scene.request.direction = Direction::write;
  EXPECT_EQ(effort_of(scene.plan()), (Effort{1, CopierBound::one_writer, std::uint64_t{64} << 20}));
  scene.resize(inline_limit_bytes);
  EXPECT_EQ(effort_of(scene.plan()).bound, CopierBound::calling_thread);
  EXPECT_EQ(effort_of(scene.plan()).most_copiers, 1U);
}

TEST(Effort, ADiskIsAskedForEightPiecesAtOnce) {
  auto scene = device_scene();
  scene.settings.cache = {Cache::bypass, Origin::call};
  scene.machine.cpus = 16;
  for (const auto direction : {Direction::read, Direction::write}) {
    scene.request.direction = direction;
    ASSERT_TRUE(scene.plan().runs[0].direct_io);
    EXPECT_EQ(effort_of(scene.plan()), (Effort{8, CopierBound::disk, std::uint64_t{64} << 20}));
  }
  EXPECT_EQ(described(scene),
            "at most 8: as many pieces as a disk has use for at once; at most 64 MiB of pinned "
            "memory");
  scene.machine.cpus = 8;
  EXPECT_EQ(effort_of(scene.plan()).bound, CopierBound::cpus);
}

TEST(Effort, StorageThatMovesByItselfTakesNoCopiers) {
  auto scene = host_scene();
  scene.settings.cache = {Cache::bypass, Origin::call};
  ASSERT_EQ(scene.plan().runs[0].route, Route::direct_host);
  EXPECT_EQ(effort_of(scene.plan()), Effort{});
  EXPECT_EQ(described(scene), "");
}

TEST(Effort, ABudgetIsOneThreadAtLeast) {
  EXPECT_EQ(thread_budget({}, 0), 1U);
  EXPECT_EQ(thread_budget({}, 2), 2U);
  EXPECT_EQ(thread_budget({}, 1000), copiers_limit);
  Settings settings;
  settings.threads = {200, Origin::api};
  EXPECT_EQ(thread_budget(settings, 2), 200U) << "a setting counts as it is";
}

}  // namespace
}  // namespace straightway::plan
