#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/plan/plan_scenes.hpp"

namespace straightway::plan {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(PlanText, AReadIntoADeviceIsUnderstoodAtOnce) {
  EXPECT_EQ(
      device_scene().plan().to_text(),
      "read 1.00 GiB of 'weights.bin' into cuda:0\n"
      "  staged            1.00 GiB  1024 segments of 1 MiB, through the page cache: "
      "device memory is reached through a pinned ring here\n"
      "  page cache                  decided per MiB by what is in it: hot from it; cold: "
      "kept in the page cache, where they fit well: the next read is hot\n"
      "  copiers                     1: the CPUs that this process may use; at most 64 MiB of "
      "pinned memory\n"
      "  not nvfs                    nvidia-fs is not loaded (no /proc/driver/nvidia-fs)\n"
      "  not p2pdma                  /dev/vda is virtio-blk, which takes no peer memory\n"
      "  not pinned-cache            the file's pages were not pinned (File::pin)\n"
      "  not direct-host, buffered: only for host memory, and this is device memory\n");
}

TEST(PlanText, BothLayersAndTheirCountersAreShown) {
  Scene scene = direct_scene();
  scene.request.door = Door::kvikio;
  scene.settings.front.task_size_bytes = {std::uint64_t{1} << 30, Origin::environment};
  EXPECT_EQ(
      scene.plan().to_text(),
      "read 1.00 GiB of 'weights.bin' into cuda:0, through the KvikIO door\n"
      "  front layer                 1 task of 1.00 GiB to cuFile: "
      "device memory goes to cuFile in tasks of task_size (1.00 GiB)\n"
      "  cuFile layer                1 request in 4 parts of 256 MiB: "
      "every prerequisite of the direct route is there\n"
      "  its counters                n=4 nvfs=4 p2pdma=0 posix=0\n"
      "  nvfs              1.00 GiB  4 segments of 256 MiB, direct I/O: "
      "every prerequisite of the direct route is there\n"
      "  not p2pdma                  kernel 6.1.0-53-amd64 does not lend device memory to direct "
      "I/O, Linux 6.2 and newer do\n"
      "  not pinned-cache            the file's pages were not pinned (File::pin)\n"
      "  not staged                  possible, but another route is faster here\n"
      "  not direct-host, buffered: only for host memory, and this is device memory\n"
      "  settings                    task_size=1073741824 (environment)\n");
}

TEST(PlanText, TasksAndPartsSayWhereTheLastDiffers) {
  Scene scene = device_scene();
  scene.request.door = Door::kvikio;
  scene.resize((std::uint64_t{9} << 20) + 1);
  scene.settings.cufile.min_io_threshold_size_kb.value = 1024;
  const std::string text = scene.plan().to_text();
  EXPECT_THAT(text, HasSubstr("3 tasks of 4 MiB (the last of 1.00 MiB) to cuFile"));
  EXPECT_THAT(text, HasSubstr("3 requests, each in 3 parts of 1 MiB (the last of 2 MiB), "
                              "the last in 1 part of 1.00 MiB"));
  EXPECT_THAT(text, HasSubstr("n=7 nvfs=0 p2pdma=0 posix=7"));
}

TEST(PlanText, AFailureComesWithEveryReason) {
  Scene scene = device_scene();
  scene.settings.policy = {Policy::direct, Origin::call};
  scene.request.direction = Direction::write;
  scene.request.file.offset = 4096;
  const std::string text = scene.plan().to_text();
  EXPECT_THAT(text, HasSubstr("write 1.00 GiB from cuda:0 to 'weights.bin', offset 4096\n"));
  EXPECT_THAT(text, HasSubstr("cannot be done    nvidia-fs is not loaded"));
  EXPECT_THAT(text, HasSubstr("not p2pdma        /dev/vda is virtio-blk"));
  EXPECT_THAT(text, HasSubstr("policy=direct (call)"));
}

TEST(PlanText, ShortReadsAndSimulatedDevicesSaySo) {
  Scene scene = device_scene();
  scene.machine.cuda_simulated = true;
  scene.request.file_size_bytes = std::uint64_t{1} << 20;
  EXPECT_THAT(scene.plan().to_text(), HasSubstr("into cuda:0 (simulated)\n"));
  EXPECT_THAT(scene.plan().to_text(), HasSubstr("will be missing: the file ends at 1048576"));
  scene.request.file.offset = std::uint64_t{1} << 20;
  EXPECT_THAT(scene.plan().to_text(), HasSubstr("the file ends before this offset"));
  scene.resize(0);
  EXPECT_THAT(scene.plan().to_text(), HasSubstr("the file ends before this offset"));
  scene.request.file.offset = 0;
  EXPECT_THAT(scene.plan().to_text(), HasSubstr("zero bytes were asked for"));
}

TEST(PlanText, PathsCannotSteerATerminal) {
  Scene scene = host_scene();
  scene.file.path = "a\x1b[2J\nb";
  EXPECT_THAT(scene.plan().to_text(), HasSubstr("'a?[2J?b'"));
}

TEST(PlanJson, HoldsTheWholePlan) {
  Scene scene = direct_scene();
  scene.request.door = Door::kvikio;
  scene.settings.front.compat_mode = {CompatMode::off, Origin::environment};
  const auto json = nlohmann::json::parse(scene.plan().to_json());
  EXPECT_EQ(json["request"]["door"], "kvikio");
  EXPECT_EQ(json["request"]["file"]["size_bytes"], std::uint64_t{1} << 30);
  EXPECT_EQ(json["front"]["tasks"]["count"], 256);
  EXPECT_EQ(json["cufile"]["counters"]["nvfs"], 256);
  EXPECT_EQ(json["runs"][0]["route"], "nvfs");
  EXPECT_EQ(json["runs"][0]["reason"]["code"], "direct-available");
  EXPECT_EQ(json["refused"]["pinned-cache"]["code"], "not-pinned");
  EXPECT_FALSE(json["refused"].contains("nvfs"));
  EXPECT_TRUE(json["failure"].is_null());
  EXPECT_EQ(json["facts"]["file"]["device"], "/dev/nvme0n1");
  EXPECT_EQ(json["settings"]["front"]["compat_mode"]["value"], "OFF");
  EXPECT_EQ(json["settings"]["front"]["compat_mode"]["origin"], "environment");
}

TEST(PlanJson, PathsNeedNotBeUtf8) {
  Scene scene = host_scene();
  scene.file.path = "a\xff\xfe";
  EXPECT_FALSE(nlohmann::json::parse(scene.plan().to_json()).is_discarded());
  scene.settings.policy = {Policy::direct, Origin::call};
  scene.file.direct_offset_align_bytes = 0;
  const auto json = nlohmann::json::parse(scene.plan().to_json());
  EXPECT_EQ(json["failure"]["code"], "no-direct-io");
  EXPECT_EQ(json["runs"].size(), 0U);
}

}  // namespace
}  // namespace straightway::plan
