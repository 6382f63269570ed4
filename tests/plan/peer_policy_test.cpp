#include "plan/peer_policy.hpp"

#include <gmock/gmock.h>

#include <functional>

#include "tests/plan/plan_scenes.hpp"

namespace straightway::plan {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t KiB = 1024;
constexpr std::uint64_t MiB = 1024 * KiB;

struct PeerScene : Scene {
  PeerFacts peer;
  Plan plan() const {
    const Facts facts{std::make_shared<FileFacts>(file),
                      std::make_shared<MachineFacts>(machine),
                      std::make_shared<PeerFacts>(peer),
                      {},
                      false};
    return make_plan(request, facts, std::make_shared<Settings>(settings));
  }
  Reason refused(Route route = Route::p2pdma) const { return plan().refused[index(route)]; }
};

// 4 MiB from ext4 on an NVMe drive into the memory of a device below the same switch.
PeerScene peer_scene() {
  PeerScene scene;
  static_cast<Scene&>(scene) = host_scene();
  scene.resize(4 * MiB);
  scene.request.file_size_bytes = 16 * MiB;
  scene.request.memory.space = SpaceKind::peer;
  scene.file.device = "/dev/nvme0n1";
  scene.file.device_driver = "nvme";
  scene.machine.kernel = "7.3.4+deb13-cloud-amd64";
  scene.peer = {"0000:03:00.0",
                true,
                PeerStorage::takes,
                PeerBridge::one_switch,
                PeerTrial::untried,
                PeerTrial::untried,
                0,
                false};
  return scene;
}

TEST(PeerPolicy, WhatNothingSpeaksAgainstIsTriedFirst) {
  PeerScene scene = peer_scene();
  Plan plan = scene.plan();
  ASSERT_EQ(plan.run_count, 1);
  EXPECT_EQ(plan.runs[0].route, Route::p2pdma);
  EXPECT_EQ(plan.runs[0].reason, Reason::peer_untried);
  EXPECT_TRUE(plan.runs[0].direct_io);
  EXPECT_THAT(plan.to_text(), HasSubstr("memory of PCI device 0000:03:00.0"));
  EXPECT_THAT(plan.to_text(), HasSubstr("one block is tried before the others"));
  EXPECT_THAT(plan.to_json(), HasSubstr("\"read_trial\": \"untried\""));
  scene.peer.read_trial = PeerTrial::passed;
  EXPECT_EQ(scene.plan().runs[0].reason, Reason::peer_direct);
  scene.request.direction = Direction::write;  // which has a trial of its own
  EXPECT_EQ(scene.plan().runs[0].reason, Reason::peer_untried);
}

TEST(PeerPolicy, EdgesGoThroughTheCpuAndAreShown) {
  PeerScene scene = peer_scene();
  scene.request.file.offset = 100;
  scene.request.memory.address += 100;
  const Plan plan = scene.plan();
  ASSERT_EQ(plan.run_count, 3);
  EXPECT_EQ(plan.runs[0].file, (FileRange{100, 3996}));
  EXPECT_EQ(plan.runs[0].route, Route::buffered);
  EXPECT_EQ(plan.runs[0].reason, Reason::edge_block);
  EXPECT_EQ(plan.runs[1].route, Route::p2pdma);
  EXPECT_EQ(plan.runs[1].file, (FileRange{4096, 4 * MiB - 4096}));
  EXPECT_EQ(plan.runs[2].file, (FileRange{4 * MiB, 100}));
}

struct Lack {
  Reason reason;
  std::function<void(PeerScene&)> make;
};

const std::vector<Lack>& lacks() {
  static const std::vector<Lack> all = {
      {Reason::kernel_without_p2pdma, [](PeerScene& s) { s.machine.kernel = "6.1.0-53-amd64"; }},
      {Reason::kernel_without_p2pdma, [](PeerScene& s) { s.machine.kernel = ""; }},
      {Reason::kernel_without_p2pdma, [](PeerScene& s) { s.machine.kernel = "rolling"; }},
      {Reason::kernel_breaks_p2pdma, [](PeerScene& s) { s.machine.kernel = "6.16.3+deb13"; }},
      {Reason::kernel_breaks_p2pdma, [](PeerScene& s) { s.machine.kernel = "6.16"; }},
      {Reason::not_published, [](PeerScene& s) { s.peer.published = false; }},
      {Reason::no_block_device,
       [](PeerScene& s) {
         s.file.filesystem = "tmpfs";
         s.file.device.clear();
       }},
      {Reason::no_block_device, [](PeerScene& s) { s.file.is_network = true; }},
      {Reason::no_block_device,
       [](PeerScene& s) {
         s.file.filesystem = "overlay";
         s.file.device.clear();
         s.peer.storage = PeerStorage::unknown;
       }},
      {Reason::no_peer_memory, [](PeerScene& s) { s.peer.storage = PeerStorage::refuses; }},
      {Reason::no_peer_memory, [](PeerScene& s) { s.file.filesystem = "btrfs"; }},
      {Reason::no_direct_io, [](PeerScene& s) { s.file.direct_offset_align_bytes = 0; }},
      {Reason::memory_misaligned, [](PeerScene& s) { s.request.memory.address += 3; }},
      {Reason::request_too_small, [](PeerScene& s) { s.resize(4095); }},
      {Reason::peer_refused, [](PeerScene& s) { s.peer.read_trial = PeerTrial::refused; }},
      {Reason::peer_data_lost, [](PeerScene& s) { s.peer.read_trial = PeerTrial::data_lost; }},
      {Reason::peer_holes, [](PeerScene& s) { s.peer.holes = true; }},
      {Reason::peer_not_tried, [](PeerScene& s) { s.peer.read_trial = PeerTrial::impossible; }},
  };
  return all;
}

// E5: the missing prerequisite is named; nothing moves under `direct`, and `auto` goes on.
TEST(PeerPolicy, E5_EveryLackIsNamedBeforeAnythingMoves) {
  for (const auto& lack : lacks()) {
    PeerScene scene = peer_scene();
    lack.make(scene);
    const Plan plan = scene.plan();
    ASSERT_EQ(plan.run_count, 1) << to_string(lack.reason);
    EXPECT_EQ(plan.runs[0].route, Route::buffered) << to_string(lack.reason);
    EXPECT_EQ(plan.runs[0].reason, Reason::peer_copied) << to_string(lack.reason);
    EXPECT_EQ(plan.refused[index(Route::p2pdma)], lack.reason);
    scene.settings.policy.value = Policy::direct;
    const Plan refused = scene.plan();
    EXPECT_EQ(refused.failure, lack.reason);
    EXPECT_EQ(refused.run_count, 0);
    EXPECT_THAT(refused.to_text(), HasSubstr("cannot be done"));
  }
}

TEST(PeerPolicy, KernelsAroundTheBrokenOneServe) {
  for (const char* kernel : {"6.2.0", "6.15.11", "6.17.13+deb13", "7.0.0", "6.160.1"}) {
    PeerScene scene = peer_scene();
    scene.machine.kernel = kernel;
    EXPECT_EQ(scene.refused(), Reason::none) << kernel;
  }
}

TEST(PeerPolicy, AnOverlayServesWhereItsLayersAreKnown) {
  PeerScene scene = peer_scene();
  scene.file.filesystem = "overlay";
  scene.file.device.clear();
  EXPECT_EQ(scene.refused(), Reason::none);
  scene.peer.storage = PeerStorage::refuses;
  EXPECT_EQ(scene.refused(), Reason::no_peer_memory);
}

// An array, say: whether its kernel passes peer memory on cannot be told beforehand.
TEST(PeerPolicy, StorageOfWhichNothingIsKnownIsTried) {
  PeerScene scene = peer_scene();
  scene.peer.storage = PeerStorage::unknown;
  EXPECT_EQ(scene.plan().runs[0].reason, Reason::peer_untried);
}

TEST(PeerPolicy, PoliciesAndDoors) {
  PeerScene scene = peer_scene();
  scene.settings.policy.value = Policy::staged;
  EXPECT_EQ(scene.plan().runs[0].route, Route::buffered);
  EXPECT_EQ(scene.plan().runs[0].reason, Reason::policy_staged);
  EXPECT_EQ(scene.refused(), Reason::policy_forbids);
  scene.settings.policy.value = Policy::automatic;
  scene.settings.cache.value = Cache::keep;
  EXPECT_EQ(scene.plan().runs[0].route, Route::buffered);
  EXPECT_EQ(scene.refused(), Reason::not_preferred);
  scene.settings.policy.value = Policy::direct;  // which outranks it
  EXPECT_EQ(scene.plan().runs[0].route, Route::p2pdma);
  EXPECT_EQ(scene.refused(Route::staged), Reason::policy_forbids);
  for (const Door door : {Door::kvikio, Door::cufile}) {
    scene.request.door = door;
    EXPECT_EQ(scene.plan().runs[0].route, Route::p2pdma) << to_string(door);
  }
}

TEST(PeerPolicy, AReadThatMeetsTheEndInItsFirstBlockIsAnEdge) {
  PeerScene scene = peer_scene();
  scene.settings.policy.value = Policy::direct;
  scene.request.file.offset = 16 * MiB - 100;
  scene.request.memory.address += 16 * MiB - 100;
  const Plan plan = scene.plan();
  EXPECT_EQ(plan.failure, Reason::none);
  ASSERT_EQ(plan.run_count, 1);
  EXPECT_EQ(plan.runs[0].route, Route::buffered);
  EXPECT_EQ(plan.runs[0].file, (FileRange{16 * MiB - 100, 100}));
}

TEST(PeerPolicy, ARefusalSaysWhatTheKernelAnswered) {
  PeerScene scene = peer_scene();
  scene.settings.policy.value = Policy::direct;
  scene.peer.read_trial = PeerTrial::refused;
  scene.peer.trial_code = 121;  // EREMOTEIO
  scene.peer.bridge = PeerBridge::host_bridge;
  const std::string text = scene.plan().to_text();
  EXPECT_THAT(text, HasSubstr("/dev/nvme0n1 to the memory of PCI device 0000:03:00.0"));
  EXPECT_THAT(text, HasSubstr("(EREMOTEIO); they lie below different ports"));
}

}  // namespace
}  // namespace straightway::plan
