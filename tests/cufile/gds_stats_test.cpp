// The lines of gds_stats, as the documented tool prints them.

#include "cufile/gds_stats.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <ranges>

#include "cufile/statistics.hpp"

namespace straightway::cufile {
namespace {

constexpr std::uint64_t MiB = 1 << 20;

constexpr const char* totals = R"(cuFile STATS VERSION : 8
GLOBAL STATS:
Read: ok = 215814 err = 1
Write: ok = 2 err = 3
HandleRegister: ok = 4 err = 5
HandleDeregister: ok = 6 err = 7
BufRegister: ok = 128 err = 9
BufDeregister: ok = 10 err = 11
BatchSubmit: ok = 12 err = 13
BatchComplete: ok = 14 err = 15
BatchSetup: ok = 16 err = 17
BatchCancel: ok = 18 err = 19
BatchDestroy: ok = 20 err = 21
BatchEnqueued: ok = 22 err = 23
PosixBatchEnqueued: ok = 24 err = 25
BatchProcessed: ok = 26 err = 27
PosixBatchProcessed: ok = 28 err = 29
Total Read Size (MiB): 107907
Read BandWidth (GiB/s): 2.50343
Avg Read Latency (us): 49731
Total Write Size (MiB): 1
Write BandWidth (GiB/s): 0
Avg Write Latency (us): 30
Total Batch Read Size (MiB): 2
Total Batch Write Size (MiB): 3
Batch Read BandWidth (GiB/s): 0.5
Batch Write BandWidth (GiB/s): 0.25
Avg Batch Submit Latency (us): 31
Avg Batch Completion Latency (us): 32
)";

constexpr const char* sizes = R"(READ-WRITE SIZE HISTOGRAM :
0-4(KiB): 0 16
4-8(KiB): 1 15
8-16(KiB): 2 14
16-32(KiB): 3 13
32-64(KiB): 4 12
64-128(KiB): 5 11
128-256(KiB): 6 10
256-512(KiB): 7 9
512-1024(KiB): 8 8
1024-2048(KiB): 9 7
2048-4096(KiB): 10 6
4096-8192(KiB): 11 5
8192-16384(KiB): 12 4
16384-32768(KiB): 13 3
32768-65536(KiB): 14 2
65536-...(KiB): 15 1
)";

// A line that ends in a backslash goes on in the next one.
constexpr const char* gpus = R"(PER_GPU STATS:
GPU 0(UUID: ce4dfa044611339ca1e22bf10a7702fe) Read: bw=2.50531 util(%)=12791 n=10 pcie p2pdma=1 \
nvfs=2 posix=3 unalign=4 dr=5 r_sparse=6 r_inline=7 err=8 MiB=9 Write: bw=0.125 util(%)=11 n=12 \
pcie p2pdma=13 nvfs=14 posix=15 unalign=16 dr=17 err=18 MiB=19 BufRegister: n=128 err=20 free=21 \
MiB=22
GPU 1(UUID: 00000000000000000000000000000000) Read: bw=0 util(%)=0 n=0 pcie p2pdma=0 nvfs=0 \
posix=0 unalign=0 dr=0 r_sparse=0 r_inline=0 err=0 MiB=0 Write: bw=0 util(%)=0 n=0 pcie p2pdma=0 \
nvfs=0 posix=0 unalign=0 dr=0 err=0 MiB=0 BufRegister: n=0 err=0 free=0 MiB=0
PER_GPU POOL BUFFER STATS:
PER_GPU POSIX POOL BUFFER STATS:
PER_GPU RDMA STATS:
RDMA MRSTATS:
peer name  nr_mrs  mr_size(MiB)
PER GPU THREAD POOL STATS:
gpu node: 0 enqueues:5 completes:5 pending suspends:0 pending yields:0 active:0 suspends:0
gpu node: 1 enqueues:0 completes:0 pending suspends:0 pending yields:0 active:0 suspends:0
)";

std::string joined(std::string text) {
  for (auto at = text.find("\\\n"); at != std::string::npos; at = text.find("\\\n", at)) {
    text.erase(at, 2);
  }
  return text;
}

abi::Level1 known_totals() {
  abi::Level1 all{};
  all.read = {215814, 1};
  all.write = {2, 3};
  all.handle_register = {4, 5};
  all.handle_deregister = {6, 7};
  all.buffer_register = {128, 9};
  all.buffer_deregister = {10, 11};
  all.batch_submit = {12, 13};
  all.batch_complete = {14, 15};
  all.batch_setup = {16, 17};
  all.batch_cancel = {18, 19};
  all.batch_destroy = {20, 21};
  all.batch_enqueued = {22, 23};
  all.batch_posix_enqueued = {24, 25};
  all.batch_processed = {26, 27};
  all.batch_posix_processed = {28, 29};
  all.read_bytes = 107907 * MiB + 5;
  all.read_bytes_per_s = 2688037486;  // 2.50343 GiB
  all.read_latency_avg_us = 49731;
  all.write_bytes = 2 * MiB - 1;
  all.write_latency_avg_us = 30;
  all.batch_read_bytes = 2 * MiB;
  all.batch_write_bytes = 3 * MiB;
  all.batch_read_bytes_per_s = 512 * MiB;
  all.batch_write_bytes_per_s = 256 * MiB;
  all.batch_submit_latency_avg_us = 31;
  all.batch_complete_latency_avg_us = 32;
  return all;
}

std::unique_ptr<Published> known_counters() {
  auto counters = std::make_unique<Published>();
  counters->level1 = known_totals();
  for (std::uint64_t i = 0; i < 16; ++i) {
    counters->read_sizes[i] = i;
    counters->write_sizes[i] = 16 - i;
  }
  counters->gpu_count = 2;
  counters->pooled_parts = {5};
  abi::PerGpu& gpu = counters->gpus[0];
  std::ranges::copy(
      "\xce\x4d\xfa\x04\x46\x11\x33\x9c\xa1\xe2\x2b\xf1\x0a\x77\x02\xfe" | std::views::take(16),
      gpu.uuid.begin());
  gpu.read = {.bytes = 9 * MiB,
              .bytes_per_s = 2690056128,  // 2.50531 GiB
              .utilization = 12791,
              .duration_us = 1,
              .n = 10,
              .p2pdma = 1,
              .nvfs = 2,
              .posix = 3,
              .unaligned = 4,
              .dr = 5};
  gpu.sparse_regions = 6;
  gpu.inline_regions = 7;
  gpu.read_errors = 8;
  gpu.write = {.bytes = 19 * MiB,
               .bytes_per_s = 128 * MiB,
               .utilization = 11,
               .duration_us = 1,
               .n = 12,
               .p2pdma = 13,
               .nvfs = 14,
               .posix = 15,
               .unaligned = 16,
               .dr = 17};
  gpu.write_errors = 18;
  gpu.mapped = 128;
  gpu.mapped_ok = 108;
  gpu.mapped_err = 20;
  gpu.mapped_free = 21;
  gpu.registered_bytes = 22 * MiB;
  return counters;
}

TEST(GdsStats, EachLevelHasTheDocumentedLines) {
  const auto counters = known_counters();
  EXPECT_EQ(gds_stats_text(*counters, 1), totals);
  EXPECT_EQ(gds_stats_text(*counters, 2), std::string(totals) + sizes);
  EXPECT_EQ(gds_stats_text(*counters, 3), std::string(totals) + sizes + joined(gpus));
}

TEST(GdsStats, HugeCountersPrint) {
  Published counters;
  std::memset(static_cast<void*>(&counters), 0xff, sizeof(counters));
  fill_rates(counters, 7);
  const std::string text = gds_stats_text(counters, 3);
  EXPECT_THAT(text, testing::HasSubstr("Read: ok = 18446744073709551615 err = 18446744073709"));
  EXPECT_THAT(text, testing::HasSubstr("GPU 15(UUID: ffffffffffffffffffffffffffffffff) "));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("GPU 16")));
}

}  // namespace
}  // namespace straightway::cufile
