#include <gmock/gmock.h>

#include <map>

#include "tests/plan/plan_scenes.hpp"

namespace straightway::plan {
namespace {

using testing::HasSubstr;

std::string say(const Scene& scene, Reason reason, Route route = Route::nvfs) {
  return sentence(reason, route, &scene.file, &scene.machine, &scene.settings);
}

TEST(Reasons, EveryCodeHasASentenceOfItsOwn) {
  std::map<std::string, std::string> code_of;
  for (std::size_t i = 1; i < reason_count; ++i) {
    const auto reason = static_cast<Reason>(i);
    const std::string text = say(host_scene(), reason);
    EXPECT_GT(text.size(), 15U) << to_string(reason);
    EXPECT_NE(text.back(), '.') << text;
    EXPECT_EQ(text.find("does not know"), std::string::npos) << to_string(reason);
    const auto [other, is_new] = code_of.emplace(text, to_string(reason));
    EXPECT_TRUE(is_new) << to_string(reason) << " reads like " << other->second;
  }
  EXPECT_THAT(say(host_scene(), static_cast<Reason>(reason_count)), HasSubstr("does not know"));
  EXPECT_EQ(sentence(Reason::none, Route::nvfs, nullptr, nullptr, nullptr),
            "no reason was recorded");
}

TEST(Reasons, SentencesHoldTheFacts) {
  Scene scene = host_scene();
  EXPECT_EQ(say(scene, Reason::nvfs_not_loaded),
            "nvidia-fs is not loaded (no /proc/driver/nvidia-fs)");
  EXPECT_EQ(say(scene, Reason::no_peer_memory),
            "/dev/vda is virtio-blk, which takes no peer memory");
  EXPECT_EQ(say(scene, Reason::no_gpu), "there is no CUDA driver (libcuda.so.1 not found)");
  EXPECT_THAT(say(scene, Reason::below_gds_threshold), HasSubstr("(16 KiB)"));
  EXPECT_THAT(say(scene, Reason::front_tasks), HasSubstr("(4 MiB)"));
  EXPECT_THAT(say(scene, Reason::small_request), HasSubstr("256 KiB"));
  EXPECT_THAT(say(scene, Reason::memory_misaligned), HasSubstr("4 bytes"));
  EXPECT_THAT(say(scene, Reason::request_too_small), HasSubstr("4 KiB"));
  EXPECT_THAT(say(scene, Reason::route_not_built, Route::p2pdma), HasSubstr("p2pdma"));
  scene.file.filesystem = "tmpfs";
  EXPECT_EQ(say(scene, Reason::no_block_device), "tmpfs has no local block device");
  scene.file.direct_offset_align_bytes = 0;
  EXPECT_EQ(say(scene, Reason::no_direct_io), "tmpfs refuses direct I/O (O_DIRECT)");
  scene.settings.policy.value = Policy::staged;
  EXPECT_EQ(say(scene, Reason::policy_forbids), "the policy staged rules it out");
}

TEST(Reasons, AutoNamesWhatIsMissing) {
  Scene scene = device_scene();
  EXPECT_THAT(say(scene, Reason::compat_mode_auto), HasSubstr("does not register"));
  scene.machine.wsl = true;
  EXPECT_THAT(say(scene, Reason::compat_mode_auto), HasSubstr("WSL"));
  scene.machine.run_udev = false;
  EXPECT_THAT(say(scene, Reason::compat_mode_auto), HasSubstr("/run/udev"));
  scene.machine.vendor_library = false;
  EXPECT_THAT(say(scene, Reason::compat_mode_auto), HasSubstr("libcufile.so.0"));
}

TEST(Reasons, TheVendorsLibraryIsNamedWithItsVersionAndCode) {
  Scene scene = direct_scene();
  scene.machine.vendor_why_not = "it sees no nvidia-fs";
  EXPECT_EQ(say(scene, Reason::vendor_unusable),
            "NVIDIA's libcufile cannot be used: it sees no nvidia-fs");
  scene.machine.vendor_version = 1150;
  scene.file.vendor_code = 5008;
  EXPECT_EQ(say(scene, Reason::vendor_refused),
            "NVIDIA's libcufile 1.15 refused this file (cuFile code 5008)");
  scene.file.vendor_code = 22;
  EXPECT_THAT(say(scene, Reason::vendor_refused), HasSubstr("(EINVAL)"));
}

TEST(Reasons, WhichWayTheVendorsLibraryGoesIsSaid) {
  Scene scene = direct_scene();
  EXPECT_THAT(say(scene, Reason::not_preferred, Route::p2pdma), HasSubstr("goes by nvidia-fs"));
  EXPECT_THAT(say(scene, Reason::not_preferred, Route::nvfs), HasSubstr("page cache"));
  scene.machine.p2pdma_pages = true;
  scene.machine.kernel = "6.17.4";
  EXPECT_THAT(say(scene, Reason::not_preferred, Route::nvfs), HasSubstr("P2PDMA switched on"));
  EXPECT_THAT(say(scene, Reason::not_preferred, Route::p2pdma), HasSubstr("page cache"));
  scene.machine.vendor_version = 1120;
  EXPECT_THAT(say(scene, Reason::vendor_unusable, Route::p2pdma), HasSubstr("came with 1.13"));
  EXPECT_THAT(say(scene, Reason::not_published, Route::p2pdma), HasSubstr("CONFIG_PCI_P2PDMA"));
  EXPECT_THAT(say(scene, Reason::not_published, Route::p2pdma), HasSubstr("p2pmem/size"));
  scene.machine.kernel = "6.1.0";  // too old for it
  EXPECT_THAT(say(scene, Reason::not_preferred, Route::nvfs), HasSubstr("page cache"));
}

}  // namespace
}  // namespace straightway::plan
