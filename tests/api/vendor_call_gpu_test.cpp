// The direct way through the vendor's library, over the simulated GPU and the library's stand-in.

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <thread>
#include <vector>

#include "api/vendor_call.hpp"
#include "tests/api/vendor_fixture.hpp"

namespace straightway {
namespace {

using testing::HasSubstr;

TEST_F(VendorCall, ReadsGoDirectAndNvidiaFsConfirmsThem) {
  auto options = direct();
  options.evidence = Demand::observed;
  const auto posix = cufile.posix();
  const auto receipt = file.read_into(memory(), options).value();
  expect_arrived(size);
  EXPECT_EQ(share(receipt, Route::nvfs).bytes, size);
  EXPECT_EQ(share(receipt, Route::nvfs).segments, 3U);
  EXPECT_EQ(share(receipt, Route::nvfs).evidence,
            (Evidence{EvidenceKind::observed, Witness::nvidia_fs, Scope::machine}));
  EXPECT_EQ(cufile.posix(), posix);
  EXPECT_THAT(receipt.to_text(), HasSubstr("nvidia-fs counted exactly these calls and bytes"));
  EXPECT_THAT(receipt.to_json(), HasSubstr("nvidia-fs"));
}

TEST_F(VendorCall, WritesGoDirectAndEdgesAreStagedAndShown) {
  const std::vector<char> wanted = tests::pattern(9 * mib);
  fake_.write(device, wanted.data(), wanted.size());
  const auto receipt = file.write_from(memory(9 * mib - 100, 50), direct(50)).value();
  EXPECT_EQ(share(receipt, Route::nvfs).bytes, 9 * mib - 8192);
  EXPECT_EQ(share(receipt, Route::staged).bytes, 8092U);
  EXPECT_EQ(share(receipt, Route::staged).reason, Reason::edge_block);
  std::vector<char> found(9 * mib - 100);
  FILE* written = std::fopen(path.c_str(), "rb");
  ASSERT_NE(written, nullptr);
  std::fseek(written, 50, SEEK_SET);
  ASSERT_EQ(std::fread(found.data(), 1, found.size(), written), found.size());
  std::fclose(written);
  EXPECT_TRUE(std::equal(found.begin(), found.end(), wanted.begin() + 50));
}

TEST_F(VendorCall, ReadsWithEdgesAndBehindTheEndAreExact) {
  const auto receipt = file.read_into(memory(size), direct(1000)).value();
  EXPECT_EQ(receipt.moved_bytes, size - 1000);
  EXPECT_TRUE(receipt.ended_early);
  EXPECT_EQ(share(receipt, Route::nvfs).bytes, size - 4096);
  expect_arrived(size - 1000, 1000);
}

TEST_F(VendorCall, PlanningTouchesNoLibrary) {
  cufile.answer_open(5033);
  const auto plan = file.explain(Direction::read, memory(), direct()).value();
  EXPECT_EQ(plan.failure, Reason::none);
  EXPECT_EQ(plan.runs[0].route, Route::nvfs);
  EXPECT_EQ(plan.machine->vendor_version, 0);
  EXPECT_EQ(cufile.open_count(), 0U);
  EXPECT_EQ(cufile.handles(), 0U);
}

TEST_F(VendorCall, E5_EveryMissingPrerequisiteIsNamedAndNoByteMoves) {
  std::filesystem::remove_all(tree.root() + "/proc/driver/nvidia-fs");
  std::filesystem::remove_all(tree.root() + "/run/udev");
  begin();
  const auto refused = file.read_into(memory(), direct());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::route_refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("nvidia-fs is not loaded"));
  EXPECT_THAT(refused.error().message(), HasSubstr("/run/udev"));
  EXPECT_EQ(cufile.calls(), 0U);
  const auto receipt = file.read_into(memory()).value();
  EXPECT_EQ(receipt.refused[index(Route::nvfs)], Reason::nvfs_not_loaded);
  expect_arrived(size);
}

TEST_F(VendorCall, E2_OnWslTheLibraryIsNotTouched) {
  tree.write("proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n");
  begin();
  const auto refused = file.read_into(memory(), direct());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("WSL"));
  EXPECT_EQ(cufile.open_count(), 0U);
}

TEST_F(VendorCall, E3_ARefusedFileGoesAnotherWayWithOneWarning) {
  cufile.answer_register(5027);
  CallOptions bypass;
  bypass.cache = Cache::bypass;
  for (int i = 0; i < 3; ++i) {
    const auto receipt = file.read_into(memory(), bypass).value();
    EXPECT_EQ(share(receipt, Route::staged).bytes, size);
    EXPECT_EQ(receipt.refused[index(Route::nvfs)], Reason::vendor_refused);
    EXPECT_THAT(receipt.to_text(), HasSubstr("5027"));
  }
  EXPECT_EQ(warnings.size(), 1U);
  EXPECT_EQ(cufile.calls(), 0U);
  expect_arrived(size);
  const auto refused = file.read_into(memory(), direct());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("5027"));
}

TEST_F(VendorCall, E6_ALibraryThatRegistersWithoutADriverIsNotUsed) {
  cufile.direct(0);
  const auto refused = file.read_into(memory(), direct());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::route_refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("sees no nvidia-fs"));
  EXPECT_EQ(cufile.calls(), 0U);
  CallOptions bypass;
  bypass.cache = Cache::bypass;
  const auto receipt = file.read_into(memory(), bypass).value();
  EXPECT_EQ(share(receipt, Route::nvfs).bytes, 0U);
  EXPECT_EQ(receipt.refused[index(Route::nvfs)], Reason::vendor_unusable);
}

TEST_F(VendorCall, E6_SilentCopiesAreStagedAndClaimedAndRememberedOnce) {
  cufile.copy_in_silence(1);
  CallOptions bypass;
  bypass.cache = Cache::bypass;
  const auto receipt = file.read_into(memory(), bypass).value();
  EXPECT_EQ(share(receipt, Route::nvfs).bytes, 0U);
  EXPECT_EQ(share(receipt, Route::staged).bytes, size);
  EXPECT_EQ(share(receipt, Route::staged).evidence.kind, EvidenceKind::claimed);
  EXPECT_EQ(share(receipt, Route::staged).reason, Reason::vendor_copies);
  expect_arrived(size);
  const auto calls = cufile.calls();
  const auto second = file.read_into(memory(), bypass).value();
  EXPECT_EQ(share(second, Route::staged).evidence.kind, EvidenceKind::observed);
  EXPECT_EQ(second.refused[index(Route::nvfs)], Reason::vendor_copies);
  EXPECT_FALSE(file.read_into(memory(), direct()));
  EXPECT_EQ(cufile.calls(), calls);
}

TEST_F(VendorCall, E6_PolicyDirectFailsOnEvidenceToTheContrary) {
  cufile.copy_in_silence(1);
  const auto copied = file.read_into(memory(), direct());
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().kind, ErrorKind::route_refused);
  EXPECT_THAT(copied.error().message(), HasSubstr("copied it through host memory"));
}

TEST_F(VendorCall, CountersThatLieDoNotMakeItDirect) {
  cufile.lie(1);
  const auto copied = file.read_into(memory(), direct());
  ASSERT_FALSE(copied);
  EXPECT_THAT(copied.error().message(), HasSubstr("copied it through host memory"));
}

TEST_F(VendorCall, TheLibrarysWordAloneIsAClaim) {
  cufile.kernel_stats(stats.c_str(), 0);
  const auto receipt = file.read_into(memory(), direct()).value();
  EXPECT_EQ(share(receipt, Route::nvfs).evidence,
            (Evidence{EvidenceKind::claimed, Witness::vendor_library, Scope::process}));
  expect_nothing_observed();
}

TEST_F(VendorCall, AListedErrorFallsBackOnceAndIsRemembered) {
  cufile.next_transfers(1, -5010, 0);
  CallOptions bypass;
  bypass.cache = Cache::bypass;
  const auto receipt = file.read_into(memory(), bypass).value();
  EXPECT_EQ(receipt.moved_bytes, size);
  expect_arrived(size);
  EXPECT_GE(receipt.fallbacks, 1U);
  EXPECT_EQ(receipt.fallback_code, 5010);
  EXPECT_EQ(receipt.refused[index(Route::nvfs)], Reason::fell_back);
  EXPECT_GT(share(receipt, Route::staged).bytes, 0U);
  EXPECT_THAT(receipt.to_text(), HasSubstr("CU_FILE_NVFS_DRIVER_ERROR"));
  const auto calls = cufile.calls();
  EXPECT_EQ(file.read_into(memory(), bypass).value().refused[index(Route::nvfs)],
            Reason::vendor_refused);
  EXPECT_EQ(cufile.calls(), calls);
}

TEST_F(VendorCall, WhatSpeaksOfTheMemoryIsNotHeldAgainstTheStorage) {
  for (const int code : {5016, 5017, 5036, 5045}) {
    cufile.next_transfers(1, -code, 0);
    EXPECT_EQ(file.read_into(memory(), past_cache()).value().fallback_code, code);
    EXPECT_EQ(share(file.read_into(memory(), past_cache()).value(), Route::nvfs).bytes, size);
  }
}

TEST_F(VendorCall, PartsThatFellBackCountAsPosix) {
  OpenOptions open;
  open.door = Door::cufile;
  begin({}, open);
  cufile.next_transfers(1, -5010, 0);
  const auto receipt = file.read_into(memory()).value();  // in parts of 8 and 4 MiB
  EXPECT_EQ(receipt.fallback_code, 5010);
  EXPECT_EQ(receipt.layer.n, 2U);
  EXPECT_GE(receipt.layer.posix, 1U);
  EXPECT_EQ(receipt.layer.nvfs + receipt.layer.posix, 2U);
  expect_arrived(size);
  EXPECT_EQ(file.read_into(memory()).value().layer.posix, 2U);
}

TEST_F(VendorCall, E12_OtherErrorsFailAndDoNotFallBack) {
  cufile.next_transfers(1, -1, EIO);
  CallOptions bypass;
  bypass.cache = Cache::bypass;
  const auto failed = file.read_into(memory(), bypass);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, EIO);
  cufile.next_transfers(100, -5010, 0);
  const auto refused = file.read_into(memory(), direct());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::route_refused);
  EXPECT_EQ(refused.error().code, 5010);
}

TEST_F(VendorCall, E10_SubmittedTransfersFollowTheSameRules) {
  auto job = file.submit_read(memory(), direct()).value();
  EXPECT_EQ(share(job.result().value(), Route::nvfs).bytes, size);
  cufile.next_transfers(100, -5036, 0);
  CallOptions bypass;
  bypass.cache = Cache::bypass;
  auto second = file.submit_read(memory(), bypass).value();
  const auto receipt = second.result().value();
  EXPECT_EQ(share(receipt, Route::staged).bytes, size);
  EXPECT_EQ(receipt.fallback_code, 5036);
  expect_arrived(size);
}

TEST_F(VendorCall, E10_ManyRangesFollowTheSameRules) {
  const std::vector<RangeRequest> ranges = {{0, mib, memory(mib)},
                                            {4 * mib, mib, memory(mib, 2 * mib)}};
  const auto receipt = file.read_ranges(ranges, direct()).value();
  EXPECT_EQ(share(receipt, Route::nvfs).bytes, 2 * mib);
  EXPECT_EQ(share(receipt, Route::nvfs).evidence.kind, EvidenceKind::observed);
  cufile.copy_in_silence(1);
  EXPECT_FALSE(file.read_ranges(ranges, direct()));
  CallOptions bypass;
  bypass.cache = Cache::bypass;
  const auto staged = file.read_ranges(ranges, bypass).value();
  EXPECT_EQ(share(staged, Route::staged).bytes, 2 * mib);
  EXPECT_EQ(staged.refused[index(Route::nvfs)], Reason::vendor_copies);
}

TEST_F(VendorCall, ShortAnswersAreContinued) {
  cufile.next_transfers(2, 8192, 0);
  const auto receipt = file.read_into(memory(), direct()).value();
  EXPECT_EQ(receipt.moved_bytes, size);
  EXPECT_EQ(share(receipt, Route::nvfs).bytes, size);
  EXPECT_GE(receipt.retries, 2U);
  expect_arrived(size);
}

TEST_F(VendorCall, AutoKeepsBytesThatThePageCacheIsToKeep) {
  const auto receipt = file.read_into(memory()).value();
  EXPECT_EQ(share(receipt, Route::staged).bytes, size);
  EXPECT_EQ(receipt.refused[index(Route::nvfs)], Reason::not_preferred);
  EXPECT_EQ(cufile.calls(), 0U);
}

TEST_F(VendorCall, ManyThreadsAtOnceAreExactOrClaimed) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const auto offset = static_cast<std::uint64_t>(i) * 3 * mib;
      const auto receipt = file.read_into(memory(3 * mib, offset), direct(offset)).value();
      EXPECT_EQ(share(receipt, Route::nvfs).bytes, 3 * mib);
    });
  }
  for (auto& thread : threads) thread.join();
  expect_arrived(size);
}

TEST_F(VendorCall, P2pdmaGoesDirectAndIsClaimedByTheLibrary) {
  begin_p2pdma();
  EXPECT_EQ(file.explain(Direction::read, memory(), direct()).value().runs[0].route, Route::p2pdma);
  EXPECT_EQ(cufile.open_count(), 0U);
  const auto before = cufile.p2pdma();
  const auto posix = cufile.posix();
  const auto receipt = file.read_into(memory(), direct()).value();
  expect_arrived(size);
  EXPECT_EQ(share(receipt, Route::p2pdma).bytes, size);
  EXPECT_EQ(share(receipt, Route::p2pdma).evidence,
            (Evidence{EvidenceKind::claimed, Witness::vendor_library, Scope::process}));
  EXPECT_EQ(receipt.refused[index(Route::nvfs)], Reason::nvfs_not_loaded);
  EXPECT_EQ(cufile.p2pdma() - before, 3U);
  EXPECT_EQ(cufile.posix(), posix);
  expect_nothing_observed();
}

TEST_F(VendorCall, P2pdmaWritesAndEdgesAreExact) {
  begin_p2pdma();
  const std::vector<char> wanted = tests::pattern(9 * mib);
  fake_.write(device, wanted.data(), wanted.size());
  const auto receipt = file.write_from(memory(9 * mib - 100, 50), direct(50)).value();
  EXPECT_EQ(share(receipt, Route::p2pdma).bytes, 9 * mib - 8192);
  EXPECT_EQ(share(receipt, Route::staged).bytes, 8092U);
  const auto read = file.read_into(memory(size), direct(1000)).value();  // behind the end, too
  EXPECT_EQ(read.moved_bytes, size - 1000);
  EXPECT_TRUE(read.ended_early);
  EXPECT_EQ(share(read, Route::p2pdma).bytes, size - 4096);
  const auto got = device_bytes(device, 8 * mib);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), wanted.begin() + 1000, [](auto a, char b) {
    return static_cast<unsigned char>(a) == static_cast<unsigned char>(b);
  }));
}

TEST_F(VendorCall, E5_WhatP2pdmaLacksIsNamedAndTheLibraryLeftAlone) {
  begin_p2pdma("6.16.3");
  std::filesystem::remove_all(tree.root() + "/run/udev");
  tree.write("boot/config-6.16.3", "# CONFIG_PCI_P2PDMA is not set\n");
  begin();
  const auto refused = file.read_into(memory(), direct());
  ASSERT_FALSE(refused);
  for (const char* lacks :
       {"nvidia-fs is not loaded", "physical address 0", "CONFIG_PCI_P2PDMA", "/run/udev"}) {
    EXPECT_THAT(refused.error().message(), HasSubstr(lacks));
  }
  EXPECT_EQ(cufile.calls(), 0U);
  const auto receipt = file.read_into(memory(), past_cache()).value();
  EXPECT_EQ(receipt.refused[index(Route::p2pdma)], Reason::kernel_breaks_p2pdma);
  EXPECT_EQ(share(receipt, Route::staged).bytes, size);
  EXPECT_EQ(context->engine()->vendor_ways().loaded(), nullptr);
}

TEST_F(VendorCall, E5_WithoutPublishedPagesOfAGpuTheLibraryIsNotLoaded) {
  for (const char* kept : {"vendor", "p2pmem/size"}) {
    begin_p2pdma();
    const std::string gpu = tree.root() + "/sys/bus/pci/devices/0000:17:00.0/";
    const auto lost = std::string(kept) == "vendor" ? "p2pmem" : "vendor";
    std::filesystem::remove_all(gpu + lost);
    begin();
    const auto receipt = file.read_into(memory(), past_cache()).value();
    EXPECT_EQ(receipt.refused[index(Route::p2pdma)], Reason::not_published);
    EXPECT_THAT(receipt.to_text(), HasSubstr("p2pmem/size"));
    EXPECT_EQ(share(receipt, Route::staged).bytes, size);
    EXPECT_FALSE(file.read_into(memory(), direct()));
    EXPECT_EQ(context->engine()->vendor_ways().loaded(), nullptr);
    EXPECT_EQ(cufile.open_count(), 0U);
  }
}

TEST_F(VendorCall, E6_SilentCopiesInPlaceOfP2pdmaAreStagedAndRemembered) {
  cufile.copy_in_silence(1);
  begin_p2pdma();
  const auto receipt = file.read_into(memory(), past_cache()).value();
  EXPECT_EQ(share(receipt, Route::p2pdma).bytes, 0U);
  EXPECT_EQ(share(receipt, Route::staged).bytes, size);
  EXPECT_EQ(share(receipt, Route::staged).reason, Reason::vendor_copies);
  EXPECT_EQ(share(receipt, Route::staged).evidence.kind, EvidenceKind::claimed);
  const auto calls = cufile.calls();
  EXPECT_EQ(file.read_into(memory(), past_cache()).value().refused[index(Route::p2pdma)],
            Reason::vendor_copies);
  EXPECT_FALSE(file.read_into(memory(), direct()));
  EXPECT_EQ(cufile.calls(), calls);
  begin();  // nothing is known there
  const auto copied = file.read_into(memory(), direct());
  ASSERT_FALSE(copied);
  EXPECT_THAT(copied.error().message(), HasSubstr("copied it through host memory"));
}

TEST_F(VendorCall, E3_AFileSystemThatP2pdmaFailsOnIsLeftOnce) {
  begin_p2pdma();
  cufile.has_p2pdma(2);
  const auto refused = file.read_into(memory(), direct());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::route_refused);
  EXPECT_EQ(refused.error().code, EREMOTEIO);
  EXPECT_THAT(refused.error().message(), HasSubstr("vendor's library refused"));
  begin();
  const auto receipt = file.read_into(memory(), past_cache()).value();
  expect_arrived(size);
  EXPECT_GE(receipt.fallbacks, 1U);
  EXPECT_EQ(receipt.fallback_code, EREMOTEIO);
  EXPECT_EQ(receipt.refused[index(Route::p2pdma)], Reason::fell_back);
  EXPECT_EQ(share(receipt, Route::staged).bytes, size);
  cufile.has_p2pdma(1);  // but that is not tried again
  EXPECT_EQ(file.read_into(memory(), past_cache()).value().refused[index(Route::p2pdma)],
            Reason::vendor_refused);
}

TEST_F(VendorCall, WhatTheMachineLacksForP2pdmaIsTheLibrarysToSay) {
  begin_p2pdma();
  cufile.has_p2pdma(0);  // no static BAR1, or another driver
  const auto receipt = file.read_into(memory(), past_cache()).value();
  EXPECT_EQ(receipt.refused[index(Route::p2pdma)], Reason::vendor_refused);
  EXPECT_THAT(receipt.to_text(), HasSubstr("5008"));
  EXPECT_EQ(warnings.size(), 1U);
  expect_arrived(size);
}

TEST_F(VendorCall, ALibraryThatWasOpenWithoutP2pdmaIsNotFitForIt) {
  begin_p2pdma();
  const auto call = [&](const char* name) { cufile.find<fakes::CufileError (*)()>(name)(); };
  call("cuFileDriverOpen");
  const auto receipt = file.read_into(memory(), past_cache()).value();
  EXPECT_EQ(receipt.refused[index(Route::p2pdma)], Reason::vendor_unusable);
  EXPECT_THAT(receipt.to_text(), HasSubstr("P2PDMA switched off"));
  EXPECT_EQ(share(receipt, Route::staged).bytes, size);
  call("cuFileDriverClose_v2");
}

TEST_F(VendorCall, WhereTheUserSwitchesItOnP2pdmaGoesBeforeNvidiaFs) {
  cufile.has_p2pdma(1);
  cufile.user_p2pdma(1);  // by cufile.json: only the library knows
  tree.write("proc/sys/kernel/osrelease", "6.17.4\n");
  begin();
  EXPECT_EQ(file.explain(Direction::read, memory(), direct()).value().runs[0].route, Route::nvfs);
  const auto receipt = file.read_into(memory(), direct()).value();
  EXPECT_EQ(share(receipt, Route::p2pdma).bytes, size);
  EXPECT_EQ(receipt.refused[index(Route::nvfs)], Reason::not_preferred);
  EXPECT_THAT(receipt.to_text(), HasSubstr("P2PDMA switched on"));
}

TEST_F(VendorCall, AtKvikiosDoorTheKeyOfAFileCountsOnceTheLibraryIsLoaded) {
  cufile.has_p2pdma(1);
  cufile.user_p2pdma(1);  // by cufile.json
  tree.write("proc/sys/kernel/osrelease", "6.17.4\n");
  OpenOptions open;
  open.door = Door::kvikio;
  begin({}, open);
  const auto receipt = file.read_into(memory()).value();
  EXPECT_EQ(share(receipt, Route::p2pdma).bytes, size);
  EXPECT_EQ(share(receipt, Route::staged).bytes, 0U);
  EXPECT_EQ(receipt.layer, (LayerCounters{.n = 3, .nvfs = 0, .p2pdma = 3, .posix = 0}));
}

TEST_F(VendorCall, ColdBytesGoTheWayThatLoadingTheLibraryShowed) {
  cufile.version(1150);  // whose counters are left alone
  cufile.kernel_stats(nullptr, 0);
  std::filesystem::remove(stats);
  cufile.has_p2pdma(1);
  cufile.user_p2pdma(1);
  tree.write("proc/sys/kernel/osrelease", "6.17.4\n");
  begin();
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ::fdatasync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
  CallOptions options;
  options.cache = Cache::drop;
  const std::vector<RangeRequest> ranges = {{100, 100, memory(100)},  // takes no library
                                            {4 * mib, 8 * mib, memory(8 * mib, mib)}};
  const auto receipt = file.read_ranges(ranges, options).value();
  if (share(receipt, Route::staged).bytes > 200) GTEST_SKIP() << "the page cache keeps its pages";
  EXPECT_EQ(share(receipt, Route::p2pdma).bytes, 8 * mib);
  EXPECT_EQ(share(receipt, Route::nvfs).bytes, 0U);
}

TEST_F(VendorCall, BytesStandUnderTheWayThatWasCounted) {
  OpenOptions open;
  open.door = Door::cufile;
  begin({}, open);
  EXPECT_EQ(share(file.read_into(memory()).value(), Route::nvfs).bytes, size);
  cufile.has_p2pdma(1);
  cufile.user_p2pdma(1);  // not what it said when it was opened
  const auto receipt = file.read_into(memory()).value();
  EXPECT_EQ(share(receipt, Route::nvfs).bytes, 0U);
  EXPECT_EQ(share(receipt, Route::p2pdma).bytes, size);
  EXPECT_EQ(share(receipt, Route::p2pdma).evidence.kind, EvidenceKind::claimed);
  EXPECT_EQ(receipt.layer, (LayerCounters{.n = 2, .nvfs = 0, .p2pdma = 2, .posix = 0}));
}

TEST_F(VendorCall, NoneMeansNever) {
  ContextOptions options;
  context.reset();
  file = {};
  options.vendor_library = "none";
  context = Context::around(Engine::create(options, os::kernel(), tree.root()).value());
  file = File::open(path, "r", {}, context).value();
  const auto refused = file.read_into(memory(), direct());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("left alone (vendor_library=none, api)"));
}

}  // namespace
}  // namespace straightway
