#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/receipt/receipt_examples.hpp"

namespace straightway {
namespace {

using nlohmann::json;
using receipt_tests::small_read;
using receipt_tests::staged_read;

json parsed(const Receipt& receipt) { return json::parse(receipt.to_json()); }

TEST(ReceiptJson, SaysAllThatTheReceiptHolds) {
  const json seen = parsed(staged_read());
  EXPECT_EQ(seen["direction"], "read");
  EXPECT_EQ(seen["door"], "straightway");
  EXPECT_EQ(seen["space"], "cuda");
  EXPECT_EQ(seen["device"], 0);
  EXPECT_EQ(seen["path"], "a.bin");
  EXPECT_EQ(seen["offset"], 0);
  EXPECT_EQ(seen["wanted_bytes"], 1 << 30);
  EXPECT_EQ(seen["moved_bytes"], 1 << 30);
  EXPECT_EQ(seen["ended_early"], false);
  EXPECT_EQ(seen["end_of_file"], nullptr);
  EXPECT_EQ(seen["retries"], 0);
  EXPECT_EQ(seen["fallbacks"], 0);
  EXPECT_EQ(seen["fallback_errno"], nullptr);
  EXPECT_EQ(seen["disk_bytes"], 0);
  EXPECT_EQ(seen["threads"], 10);
  EXPECT_EQ(seen["pinned_bytes"], 64 << 20);
  EXPECT_EQ(seen["times"], json::parse(R"({"queued_ns": 1000, "started_ns": 2000,
                                           "first_byte_ns": 500000, "done_ns": 20101000})"));
  EXPECT_EQ(seen["duration_ns"], 20'100'000);
  EXPECT_EQ(seen["ranges"], nullptr);
}

TEST(ReceiptJson, RoutesCarryReasonAndEvidence) {
  const json seen = parsed(staged_read());
  ASSERT_EQ(seen["routes"].size(), 1u);
  const json& route = seen["routes"][0];
  EXPECT_EQ(route["route"], "staged");
  EXPECT_EQ(route["bytes"], 1 << 30);
  EXPECT_EQ(route["segments"], 1024);
  EXPECT_EQ(route["reason"], "device-memory");
  EXPECT_TRUE(route["reason_text"].is_string());
  EXPECT_EQ(route["evidence"],
            json::parse(R"({"kind": "observed", "witness": "own-copy", "scope": "request"})"));
  ASSERT_EQ(seen["refused"].size(), 4u);
  EXPECT_EQ(seen["refused"][0]["route"], "nvfs");
  EXPECT_EQ(seen["refused"][0]["reason"], "nvfs-not-loaded");
}

TEST(ReceiptJson, WhatWasFoundInThePageCacheStandsBesideTheDisk) {
  Receipt receipt = staged_read();
  EXPECT_EQ(parsed(receipt)["found"], nullptr);
  receipt.found = {3 << 20, 1 << 20, 4096};
  receipt.cold_reason = Reason::cold_kept;
  const json found = parsed(receipt)["found"];
  EXPECT_EQ(found["hot_bytes"], 3 << 20);
  EXPECT_EQ(found["cold_bytes"], 1 << 20);
  EXPECT_EQ(found["unknown_bytes"], 4096);
  EXPECT_EQ(found["cold_reason"], "cold-kept");
  EXPECT_TRUE(found["cold_reason_text"].is_string());
}

TEST(ReceiptJson, WhatIsNotThereIsNull) {
  const json seen = parsed(small_read());
  EXPECT_EQ(seen["device"], nullptr);
  EXPECT_EQ(seen["disk_bytes"], nullptr);
  EXPECT_EQ(parsed(Receipt{})["path"], nullptr);
  EXPECT_EQ(parsed(Receipt{})["settings"], json::object());
}

TEST(ReceiptJson, EndOfFileAndFallbackAreNamed) {
  Receipt receipt = small_read();
  receipt.ended_early = true;
  receipt.end_of_file = UINT64_MAX;
  receipt.fallbacks = 3;
  receipt.fallback_code = EIO;
  const json seen = parsed(receipt);
  EXPECT_EQ(seen["end_of_file"], UINT64_MAX);
  EXPECT_EQ(seen["fallbacks"], 3);
  EXPECT_EQ(seen["fallback_errno"], EIO);
  EXPECT_EQ(seen["fallback_errno_name"], "EIO");
}

TEST(ReceiptJson, SettingsHaveValueAndOrigin) {
  Receipt receipt;
  auto settings = std::make_shared<Settings>();
  settings->policy = {Policy::direct, Origin::call};
  settings->front.compat_mode = {CompatMode::off, Origin::environment};
  receipt.settings = settings;
  json seen = parsed(receipt)["settings"];
  EXPECT_EQ(seen["policy"], json::parse(R"({"value": "direct", "origin": "call"})"));
  EXPECT_EQ(seen["pinned_bytes"], json::parse(R"({"value": 67108864, "origin": "default"})"));
  EXPECT_EQ(seen["ledger"], json::parse(R"({"value": true, "origin": "default"})"));
  EXPECT_FALSE(seen.contains("front"));
  receipt.door = Door::kvikio;
  seen = parsed(receipt)["settings"];
  EXPECT_EQ(seen["front"]["compat_mode"],
            json::parse(R"({"value": "OFF", "origin": "environment"})"));
  EXPECT_EQ(seen["cufile"]["max_io_threads"], json::parse(R"({"value": 4, "origin": "default"})"));
}

TEST(ReceiptJson, RangesAreArrays) {
  Receipt receipt = small_read();
  receipt.ranges = std::make_shared<RangeTable>(RangeTable{{0, 8192}, {2048, 4096}, {2048, 7}});
  EXPECT_EQ(parsed(receipt)["ranges"],
            json::parse(R"({"offset": [0, 8192], "wanted_bytes": [2048, 4096],
                            "moved_bytes": [2048, 7]})"));
}

TEST(ReceiptJson, APathThatIsNoTextIsStillJson) {
  Receipt receipt;
  auto file = std::make_shared<FileFacts>();
  file->path = "a\xff\n";
  receipt.file = file;
  EXPECT_EQ(parsed(receipt)["path"], "a\xef\xbf\xbd\n");
}

}  // namespace
}  // namespace straightway
