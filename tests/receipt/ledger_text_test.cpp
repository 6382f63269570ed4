#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "receipt/ledger.hpp"

namespace straightway::receipt {
namespace {

LedgerSnapshot busy() {
  LedgerSnapshot snapshot;
  snapshot.pid = 4242;
  snapshot.program = "train";
  snapshot.started_ns = 1'790'000'000'000'000'000;
  snapshot.bytes[index(Route::staged)][0] = std::uint64_t{1} << 30;
  snapshot.segments[index(Route::staged)][0] = 1024;
  snapshot.bytes[index(Route::buffered)][1] = 8192;
  snapshot.segments[index(Route::buffered)][1] = 2;
  snapshot.sizes[4][0] = {99, std::uint64_t{1} << 30, 20'000'000};
  snapshot.sizes[1][1] = {2, 8192, 4096};
  snapshot.latencies[4][0] = 98;  // below 16 us
  snapshot.latencies[10][0] = 1;  // below 1024 us
  snapshot.latencies[23][1] = 2;  // the last class
  snapshot.errors = {1, 0};
  snapshot.retries = 5;
  snapshot.short_reads = 1;
  snapshot.layer = {4, 1, 0, 3};
  return snapshot;
}

TEST(LedgerText, IsATableThatAPersonUnderstands) {
  EXPECT_EQ(to_text(busy()),
            "train (process 4242), since 2026-09-21 14:13:20 UTC\n"
            "                 requests       moved        rate        p50        p99  errors\n"
            "  read                 99    1.00 GiB   53.7 GB/s  < 16.0 us  < 1.02 ms       1\n"
            "  write                 2       8 KiB   2.00 GB/s  >= 4.19 s  >= 4.19 s       0\n"
            "\n"
            "  route                         moved    segments\n"
            "  staged             read    1.00 GiB        1024\n"
            "  buffered          write       8 KiB           2\n"
            "\n"
            "  request size                  moved    requests        rate\n"
            "  < 64 KiB          write       8 KiB           2   2.00 GB/s\n"
            "  < 256 MiB          read    1.00 GiB          99   53.7 GB/s\n"
            "\n"
            "  submitted again: 5, fell back: 0, ended early: 1\n"
            "\n"
            "  cuFile layer: n=4 nvfs=1 p2pdma=0 posix=3\n");
}

TEST(LedgerText, NothingYetIsShort) {
  LedgerSnapshot snapshot;
  snapshot.pid = 7;
  snapshot.program = "idle";
  EXPECT_EQ(to_text(snapshot),
            "idle (process 7), since 1970-01-01 00:00:00 UTC\n"
            "                 requests       moved        rate        p50        p99  errors\n"
            "  read                  0     0 bytes           -          -          -       0\n"
            "  write                 0     0 bytes           -          -          -       0\n");
}

TEST(LedgerJson, HasStableKeys) {
  const auto seen = nlohmann::json::parse(to_json(busy()));
  EXPECT_EQ(seen["pid"], 4242);
  EXPECT_EQ(seen["program"], "train");
  EXPECT_EQ(seen["started_ns"], 1'790'000'000'000'000'000);
  EXPECT_EQ(seen["read"],
            nlohmann::json::parse(
                R"({"requests": 99, "bytes": 1073741824, "time_ns": 20000000, "errors": 1})"));
  ASSERT_EQ(seen["routes"].size(), 12u);
  EXPECT_EQ(
      seen["routes"][8],
      nlohmann::json::parse(
          R"({"route": "staged", "direction": "read", "bytes": 1073741824, "segments": 1024})"));
  ASSERT_EQ(seen["sizes"].size(), 16u);
  EXPECT_EQ(seen["sizes"][0]["below_bytes"], 4096);
  EXPECT_EQ(seen["sizes"][14]["below_bytes"], nullptr);
  const auto& read = seen["latencies"]["read"];
  EXPECT_EQ(read["p50_below_us"], 16);
  EXPECT_EQ(read["p99_below_us"], 1024);
  ASSERT_EQ(read["buckets"].size(), 24u);
  EXPECT_EQ(read["buckets"][4], nlohmann::json::parse(R"({"below_us": 16, "requests": 98})"));
  EXPECT_EQ(seen["latencies"]["write"]["p50_below_us"], nullptr);
  EXPECT_EQ(seen["retries"], 5);
  EXPECT_EQ(seen["fallbacks"], 0);
  EXPECT_EQ(seen["short_reads"], 1);
  EXPECT_EQ(seen["layer"]["posix"], 3);
}

}  // namespace
}  // namespace straightway::receipt
