// What a person reads, to the letter. The sentences for reasons are the planner's; these tests ask
// for them where they stand.

#include <gtest/gtest.h>

#include "plan/planner.hpp"
#include "tests/receipt/receipt_examples.hpp"

namespace straightway {
namespace {

using receipt_tests::small_read;
using receipt_tests::staged_read;

std::string sentence(const Receipt& receipt, Reason reason, Route route) {
  return plan::sentence(reason, route, receipt.file.get(), receipt.machine.get(),
                        receipt.settings.get());
}

TEST(ReceiptText, StagedReadLooksLikeTheDesign) {
  const Receipt receipt = staged_read();
  EXPECT_EQ(receipt.to_text(),
            "1.00 GiB into cuda:0 in 20.1 ms, 53.4 GB/s\n"
            "  staged     1.00 GiB  from cache (observed: 0 bytes read from the disk)   "
            "10 copiers, 64 MiB pinned\n"
            "  not nvfs             " +
                sentence(receipt, Reason::nvfs_not_loaded, Route::nvfs) +
                "\n"
                "  not p2pdma           " +
                sentence(receipt, Reason::no_peer_memory, Route::p2pdma) + "\n");
}

TEST(ReceiptText, SmallHostReadSaysWhatWasNotMeasured) {
  EXPECT_EQ(small_read().to_text(),
            "4 KiB into host memory in 2.00 us, 2.05 GB/s\n"
            "  buffered 4 KiB  source not measured   1 copier   observed (own copy)\n");
}

TEST(ReceiptText, TheSimulatedGpuIsCalledSo) {
  Receipt receipt = staged_read();
  auto machine = std::make_shared<MachineFacts>();
  machine->cuda_simulated = true;
  receipt.machine = machine;
  EXPECT_EQ(receipt.to_text().substr(0, 42), "1.00 GiB into cuda:0 (simulated) in 20.1 m");
}

TEST(ReceiptText, SourceIsDiskOrPartlyDisk) {
  Receipt receipt = small_read();
  receipt.disk_measured = true;
  receipt.disk_bytes = 16384;  // with readahead
  EXPECT_EQ(receipt.to_text(),
            "4 KiB into host memory in 2.00 us, 2.05 GB/s\n"
            "  buffered 4 KiB  from disk (observed: 16 KiB read from the disk)   1 copier\n");
  receipt.disk_bytes = 1024;
  EXPECT_EQ(receipt.to_text(),
            "4 KiB into host memory in 2.00 us, 2.05 GB/s\n"
            "  buffered 4 KiB  partly from disk (observed: 1 KiB read from the disk)   1 copier\n");
}

TEST(ReceiptText, WhatWasFoundColdOrUnknownIsSaid) {
  Receipt receipt = staged_read();
  receipt.refused = {};
  receipt.found = {std::uint64_t{1} << 30, 0, 0};  // as the line above says
  EXPECT_EQ(receipt.to_text().find("found"), std::string::npos);
  receipt.found = {768 << 20, 256 << 20, 0};
  receipt.cold_reason = Reason::cold_dropped;
  EXPECT_NE(receipt.to_text().find(
                "  found 768 MiB hot, 256 MiB cold; cold: more than half of the memory to spare, "
                "so the page cache lets go of them at once (RWF_DONTCACHE)\n"),
            std::string::npos)
      << receipt.to_text();
  receipt.found = {0, 0, 1 << 20};
  EXPECT_NE(receipt.to_text().find("  found 0 bytes hot, 0 bytes cold, 1 MiB unknown\n"),
            std::string::npos)
      << receipt.to_text();
}

TEST(ReceiptText, WriteNamesTheFileAndHasNoSource) {
  Receipt receipt = staged_read();
  receipt.direction = Direction::write;
  receipt.refused = {};
  receipt.disk_measured = false;
  EXPECT_EQ(receipt.to_text(),
            "1.00 GiB from cuda:0 to 'a.bin' in 20.1 ms, 53.4 GB/s\n"
            "  staged 1.00 GiB  10 copiers, 64 MiB pinned   observed (own copy)\n");
}

TEST(ReceiptText, ClaimsAndEdgesAreShownAsSuch) {
  Receipt receipt = staged_read();
  receipt.refused = {};
  receipt.disk_measured = false;
  receipt.moved_bytes = receipt.wanted_bytes = (1 << 20) + 100;
  receipt.routes = {};
  receipt.routes[index(Route::nvfs)] = {
      1 << 20,
      1,
      Reason::policy_direct,
      {EvidenceKind::claimed, Witness::vendor_library, Scope::process}};
  receipt.routes[index(Route::staged)] = {
      100, 1, Reason::edge_block, {EvidenceKind::observed, Witness::own_copy, Scope::request}};
  receipt.threads = 4;
  receipt.layer = {2, 1, 0, 1};
  EXPECT_EQ(receipt.to_text(),
            "1.00 MiB into cuda:0 in 20.1 ms, 52.2 MB/s\n"
            "  nvfs   1 MiB      source not measured   4 threads   "
            "claimed (by the vendor's library, of the whole process)   " +
                sentence(receipt, Reason::policy_direct, Route::nvfs) +
                "\n"
                "  staged 100 bytes  source not measured   64 MiB pinned   observed (own copy)   " +
                sentence(receipt, Reason::edge_block, Route::staged) +
                "\n"
                "  cuFile layer: n=2 nvfs=1 p2pdma=0 posix=1\n");
}

TEST(ReceiptText, EndOfFileRetriesAndFallbacks) {
  Receipt receipt = small_read();
  receipt.wanted_bytes = 8192;
  receipt.ended_early = true;
  receipt.end_of_file = 5'000'000'000;
  receipt.retries = 1;
  receipt.fallbacks = 2;
  receipt.fallback_code = EINVAL;
  receipt.refused[index(Route::direct_host)] = Reason::fell_back;
  EXPECT_EQ(receipt.to_text(),
            "4 KiB into host memory in 2.00 us, 2.05 GB/s\n"
            "  buffered        4 KiB  source not measured   1 copier   observed (own copy)\n"
            "  not direct-host        " +
                sentence(receipt, Reason::fell_back, Route::direct_host) +
                "\n"
                "  short: end of file at 5000000000, 8 KiB wanted\n"
                "  1 piece submitted again (interrupted or short)\n"
                "  2 segments fell back from direct-host, first after EINVAL (Invalid argument)\n");
}

TEST(ReceiptText, ZeroBytesAndNoTimes) {
  Receipt receipt;
  EXPECT_EQ(receipt.to_text(), "0 bytes into host memory\n");
  receipt.times = {5, 5, 0, 905};
  EXPECT_EQ(receipt.to_text(), "0 bytes into host memory in 900 ns\n");
}

TEST(ReceiptText, SettingsThatSomebodySetAreNamedWithTheirOrigin) {
  Receipt receipt;
  auto settings = std::make_shared<Settings>();
  settings->policy = {Policy::direct, Origin::call};
  settings->threads = {4, Origin::environment};
  settings->ledger = {false, Origin::api};
  settings->front.compat_mode = {CompatMode::on, Origin::environment};
  settings->cufile.force_compat_mode = {true, Origin::file};
  receipt.settings = settings;
  EXPECT_EQ(receipt.to_text(),
            "0 bytes into host memory\n"
            "  settings: policy=direct (call), threads=4 (environment), ledger=false (api)\n");
  receipt.door = Door::kvikio;
  EXPECT_EQ(receipt.to_text(),
            "0 bytes into host memory\n"
            "  settings: policy=direct (call), threads=4 (environment), ledger=false (api), "
            "compat_mode=ON (environment), force_compat_mode=true (file)\n");
}

TEST(ReceiptText, RangesAreCounted) {
  Receipt receipt = small_read();
  receipt.ranges = std::make_shared<RangeTable>(RangeTable{{0, 8192}, {2048, 2048}, {2048, 2048}});
  EXPECT_EQ(receipt.to_text().substr(0, 45), "4 KiB in 2 ranges into host memory in 2.00 us");
}

TEST(ReceiptText, AHostilePathCannotDriveTheTerminal) {
  Receipt receipt;
  receipt.direction = Direction::write;
  auto file = std::make_shared<FileFacts>();
  file->path = "a\x1b[2J\nb";
  receipt.file = file;
  EXPECT_EQ(receipt.to_text(), "0 bytes from host memory to 'a\\x1b[2J\\x0ab'\n");
}

}  // namespace
}  // namespace straightway
