// Words, receipts and plans in the C ABI.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "straightway/file.hpp"
#include "straightway/route.hpp"
#include "straightway/straightway.h"
#include "tests/api/c_api_fixture.hpp"

TEST(CApiWords, Names) {
  EXPECT_STREQ(sw_version(), straightway::version());
  EXPECT_EQ(sw_abi_version(), static_cast<std::uint32_t>(SW_ABI_VERSION));
  EXPECT_STREQ(sw_route_name(SW_ROUTE_DIRECT_HOST), "direct-host");
  EXPECT_STREQ(sw_route_name(-1), "unknown");
  EXPECT_STREQ(sw_route_name(SW_ROUTE_COUNT), "unknown");
  EXPECT_STREQ(sw_reason_name(static_cast<sw_reason>(straightway::Reason::nvfs_not_loaded)),
               "nvfs-not-loaded");
  EXPECT_STREQ(sw_reason_name(255), "unknown");
  EXPECT_STREQ(sw_reason_name(256), "unknown");
  EXPECT_STREQ(sw_reason_name(-1), "unknown");
  EXPECT_STREQ(sw_status_name(SW_OK), "ok");
  EXPECT_STREQ(sw_status_name(SW_FORKED), to_string(straightway::ErrorKind::forked));
  EXPECT_STREQ(sw_status_name(SW_FORKED + 1), "unknown");
  EXPECT_STREQ(sw_status_name(-1), "unknown");
}

TEST(CApiEdge, GettersAndFreesTakeNull) {
  sw_context_destroy(nullptr);
  sw_file_free(nullptr);
  sw_job_free(nullptr);
  sw_receipt_free(nullptr);
  sw_plan_free(nullptr);
  sw_init(nullptr, 8);
  EXPECT_EQ(sw_file_is_closed(nullptr), 1);
  EXPECT_EQ(sw_file_path(nullptr), nullptr);
  EXPECT_EQ(sw_file_descriptor(nullptr), -1);
  EXPECT_EQ(sw_job_done(nullptr), 0);
  EXPECT_EQ(sw_job_cancel(nullptr), 0);
  EXPECT_EQ(sw_receipt_moved_bytes(nullptr), 0U);
  EXPECT_EQ(sw_receipt_wanted_bytes(nullptr), 0U);
  EXPECT_EQ(sw_receipt_ranges(nullptr, nullptr, nullptr, nullptr), 0U);
  EXPECT_EQ(sw_receipt_text(nullptr), nullptr);
  EXPECT_EQ(sw_receipt_json(nullptr), nullptr);
  EXPECT_EQ(sw_plan_failure(nullptr), 0);
  EXPECT_EQ(sw_plan_refused(nullptr, 0), 0);
  EXPECT_EQ(sw_plan_run_count(nullptr), 0U);
  EXPECT_EQ(sw_plan_text(nullptr), nullptr);
  EXPECT_EQ(sw_plan_json(nullptr), nullptr);
}

TEST_F(CApi, ReadGivesTheBytesAndAReceipt) {
  open();
  std::vector<char> memory(5000, 'x');
  auto options = fresh<sw_call_options>();
  options.offset = 3;
  sw_receipt* receipt = nullptr;
  ASSERT_EQ(sw_read_into(file_, memory.data(), memory.size(), &options, &receipt, &error_), SW_OK)
      << error_.message;
  EXPECT_EQ(std::string(memory.begin(), memory.end()), bytes_.substr(3, 5000));
  EXPECT_EQ(sw_receipt_moved_bytes(receipt), 5000U);
  EXPECT_EQ(sw_receipt_wanted_bytes(receipt), 5000U);
  auto summary = fresh<sw_receipt_summary>();
  ASSERT_EQ(sw_receipt_summarize(receipt, &summary, &error_), SW_OK);
  EXPECT_EQ(summary.direction, SW_READ);
  EXPECT_EQ(summary.space, SW_SPACE_HOST);
  EXPECT_EQ(summary.device, -1);
  EXPECT_EQ(summary.file_offset, 3U);
  EXPECT_EQ(summary.moved_bytes, 5000U);
  EXPECT_EQ(summary.ended_early, 0);
  EXPECT_EQ(summary.range_count, 0U);
  EXPECT_LE(summary.queued_ns, summary.done_ns);
  std::uint64_t sum = 0;
  for (sw_route route = 0; route < SW_ROUTE_COUNT; ++route) {
    auto share = fresh<sw_route_share>();
    ASSERT_EQ(sw_receipt_route(receipt, route, &share, &error_), SW_OK);
    EXPECT_EQ(share.route, route);
    EXPECT_EQ(share.bytes == 0, share.segments == 0);
    sum += share.bytes;
  }
  EXPECT_EQ(sum, 5000U);
  auto share = fresh<sw_route_share>();
  EXPECT_EQ(sw_receipt_route(receipt, SW_ROUTE_COUNT, &share, &error_), SW_INVALID_ARGUMENT);
  share.struct_size = 8;
  EXPECT_EQ(sw_receipt_route(receipt, 0, &share, &error_), SW_INVALID_ARGUMENT);
  EXPECT_NE(std::string(sw_receipt_text(receipt)).find("buffered"), std::string::npos);
  EXPECT_EQ(sw_receipt_text(receipt), sw_receipt_text(receipt));
  EXPECT_EQ(sw_receipt_json(receipt)[0], '{');
  sw_receipt_free(receipt);
}

TEST_F(CApi, RangesShareOneReceipt) {
  open("r+");
  std::vector<char> memory(300, 'x');
  const sw_range ranges[] = {{10, 100, memory.data()},
                             {file_bytes - 7, 50, memory.data() + 100},
                             {0, 50, memory.data() + 200}};
  sw_receipt* receipt = nullptr;
  ASSERT_EQ(sw_read_ranges(file_, ranges, 3, nullptr, &receipt, &error_), SW_OK) << error_.message;
  EXPECT_EQ(std::string(memory.data(), 100), bytes_.substr(10, 100));
  EXPECT_EQ(std::string(memory.data() + 100, 8), bytes_.substr(file_bytes - 7) + "x");
  EXPECT_EQ(std::string(memory.data() + 200, 50), bytes_.substr(0, 50));
  const std::uint64_t* offset = nullptr;
  const std::uint64_t* wanted = nullptr;
  const std::uint64_t* moved = nullptr;
  ASSERT_EQ(sw_receipt_ranges(receipt, &offset, &wanted, &moved), 3U);
  EXPECT_EQ(offset[1], file_bytes - 7);
  EXPECT_EQ(wanted[1], 50U);
  EXPECT_EQ(moved[0], 100U);
  EXPECT_EQ(moved[1], 7U);
  EXPECT_EQ(moved[2], 50U);
  EXPECT_EQ(sw_receipt_moved_bytes(receipt), 157U);
  sw_receipt_free(receipt);

  std::vector<char> source(20, 's');
  const sw_range targets[] = {{1, 10, source.data()}, {5000, 10, source.data() + 10}};
  ASSERT_EQ(sw_write_ranges(file_, targets, 2, nullptr, nullptr, &error_), SW_OK);
  std::string expected = bytes_;
  expected.replace(1, 10, source.data(), 10);
  expected.replace(5000, 10, source.data() + 10, 10);
  EXPECT_EQ(contents(), expected);
  EXPECT_EQ(sw_read_ranges(file_, nullptr, 0, nullptr, nullptr, &error_), SW_OK) << error_.message;
}

TEST_F(CApi, RangesOfOneMemory) {
  open("r+");
  std::vector<char> memory(300, 'x');
  const sw_placed_range ranges[] = {{10, 100, 200}, {file_bytes - 7, 50, 0}};
  sw_receipt* receipt = nullptr;
  ASSERT_EQ(sw_read_ranges_into(file_, memory.data(), memory.size(), ranges, 2, nullptr, &receipt,
                                &error_),
            SW_OK)
      << error_.message;
  EXPECT_EQ(std::string(memory.data() + 200, 100), bytes_.substr(10, 100));
  EXPECT_EQ(std::string(memory.data(), 8), bytes_.substr(file_bytes - 7) + "x");
  EXPECT_EQ(sw_receipt_moved_bytes(receipt), 107U);
  EXPECT_EQ(sw_receipt_ranges(receipt, nullptr, nullptr, nullptr), 2U);
  sw_receipt_free(receipt);

  EXPECT_EQ(sw_write_ranges_from(file_, memory.data(), 250, ranges, 2, nullptr, nullptr, &error_),
            SW_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("range 0 of"), std::string::npos);
  EXPECT_EQ(contents(), bytes_);
  const sw_placed_range targets[] = {{1, 10, 200}, {5000, 10, 200}};
  ASSERT_EQ(sw_write_ranges_from(file_, memory.data(), memory.size(), targets, 2, nullptr, nullptr,
                                 &error_),
            SW_OK)
      << error_.message;
  std::string expected = bytes_;
  expected.replace(1, 10, bytes_, 10, 10);
  expected.replace(5000, 10, bytes_, 10, 10);
  EXPECT_EQ(contents(), expected);
  EXPECT_EQ(sw_read_ranges_into(file_, nullptr, 0, nullptr, 0, nullptr, nullptr, &error_), SW_OK);
  EXPECT_EQ(sw_read_ranges_into(file_, nullptr, 0, nullptr, 1, nullptr, nullptr, &error_),
            SW_INVALID_ARGUMENT);
}

TEST_F(CApi, PlansSayWhatWouldBeDone) {
  open();
  std::vector<char> memory(file_bytes, 'x');
  sw_plan* plan = nullptr;
  ASSERT_EQ(sw_explain(file_, SW_READ, memory.data(), memory.size(), nullptr, &plan, &error_),
            SW_OK)
      << error_.message;
  EXPECT_EQ(sw_plan_failure(plan), 0);
  EXPECT_STREQ(sw_reason_name(sw_plan_refused(plan, SW_ROUTE_STAGED)), "space-is-host");
  ASSERT_GE(sw_plan_run_count(plan), 1U);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < sw_plan_run_count(plan); ++i) {
    auto run = fresh<sw_plan_run>();
    ASSERT_EQ(sw_plan_get_run(plan, i, &run, &error_), SW_OK);
    EXPECT_EQ(run.offset, sum);
    EXPECT_GT(run.segments, 0U);
    sum += run.size_bytes;
  }
  EXPECT_EQ(sum, file_bytes);
  auto run = fresh<sw_plan_run>();
  EXPECT_EQ(sw_plan_get_run(plan, sw_plan_run_count(plan), &run, &error_), SW_INVALID_ARGUMENT);
  EXPECT_STRNE(sw_plan_text(plan), "");
  EXPECT_EQ(sw_plan_json(plan)[0], '{');
  sw_plan_free(plan);
  ASSERT_EQ(sw_explain_space(file_, SW_READ, SW_SPACE_HOST, 5, 100, nullptr, &plan, &error_),
            SW_OK);
  sw_plan_free(plan);
  EXPECT_EQ(std::string(memory.begin(), memory.end()), std::string(file_bytes, 'x'));
}
