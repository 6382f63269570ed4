// The option structs of the C ABI: what they mean, and what is refused.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "straightway/straightway.h"
#include "tests/api/c_api_fixture.hpp"

TEST_F(CApi, WrongStructSizesAreRefusedBeforeAnythingHappens) {
  for (const std::uint32_t size : {0U, 4U, 87U, 4097U, 0xffffffffU}) {
    auto options = fresh<sw_open_options>();
    options.struct_size = size == 87U ? 15U : size;
    EXPECT_EQ(sw_open(nullptr, path_.c_str(), "r", &options, &file_, &error_), SW_INVALID_ARGUMENT);
    EXPECT_EQ(file_, nullptr);
    auto context_options = fresh<sw_context_options>();
    context_options.struct_size = size == 87U ? 55U : size;
    sw_context* context = nullptr;
    EXPECT_EQ(sw_context_create(&context_options, &context, &error_), SW_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error_.message).find("sw_context_options"), std::string::npos);
  }
  open();
  char byte = 'x';
  for (const std::uint32_t size : {0U, 4U, 87U, 4097U, 0xffffffffU}) {
    auto options = fresh<sw_call_options>();
    options.struct_size = size;
    EXPECT_EQ(sw_read_into(file_, &byte, 1, &options, nullptr, &error_), SW_INVALID_ARGUMENT);
    auto error = fresh<sw_error>();
    error.struct_size = size;
    EXPECT_EQ(sw_read_into(file_, &byte, 1, nullptr, nullptr, &error), SW_INVALID_ARGUMENT);
    EXPECT_STREQ(error.message, "");
  }
  EXPECT_EQ(byte, 'x');
}

TEST_F(CApi, UnknownValuesAreRefused) {
  auto open_options = fresh<sw_open_options>();
  open_options.policy = 4;
  EXPECT_EQ(sw_open(nullptr, path_.c_str(), "r", &open_options, &file_, &error_),
            SW_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("policy 4"), std::string::npos) << error_.message;
  open_options.policy = 0;
  open_options.door = 3;
  EXPECT_EQ(sw_open(nullptr, path_.c_str(), "r", &open_options, &file_, &error_),
            SW_INVALID_ARGUMENT);
  open();
  std::vector<char> memory(10, 'x');
  const auto refuses = [&](auto set) {
    auto options = fresh<sw_call_options>();
    set(options);
    return sw_read_into(file_, memory.data(), memory.size(), &options, nullptr, &error_) ==
           SW_INVALID_ARGUMENT;
  };
  EXPECT_TRUE(refuses([](sw_call_options& o) { o.policy = -1; }));
  EXPECT_TRUE(refuses([](sw_call_options& o) { o.cache = 5; }));
  EXPECT_TRUE(refuses([](sw_call_options& o) { o.evidence = 3; }));
  EXPECT_TRUE(refuses([](sw_call_options& o) { o.sync = 3; }));
  EXPECT_TRUE(refuses([](sw_call_options& o) { o.flags = 4; }));
  EXPECT_TRUE(refuses([](sw_call_options& o) { o.deadline_ns = UINT64_MAX; }));
  EXPECT_EQ(memory, std::vector<char>(10, 'x'));
  sw_plan* plan = nullptr;
  EXPECT_EQ(sw_explain(file_, 2, memory.data(), 10, nullptr, &plan, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_explain_space(file_, SW_READ, 2, 0, 10, nullptr, &plan, &error_),
            SW_INVALID_ARGUMENT);
  EXPECT_EQ(sw_explain_space(file_, SW_READ, SW_SPACE_CUDA, -1, 10, nullptr, &plan, &error_),
            SW_INVALID_ARGUMENT);
  EXPECT_EQ(plan, nullptr);
}

TEST_F(CApi, ContextOptionsAreCheckedAndUsed) {
  auto options = fresh<sw_context_options>();
  sw_context* context = nullptr;
  options.flags = 1U << 20;
  EXPECT_EQ(sw_context_create(&options, &context, &error_), SW_INVALID_ARGUMENT);
  options.flags = SW_CONTEXT_LEDGER | SW_CONTEXT_NO_LEDGER;
  EXPECT_EQ(sw_context_create(&options, &context, &error_), SW_INVALID_ARGUMENT);
  options.flags = SW_CONTEXT_THREADS;
  options.threads = 1025;
  EXPECT_EQ(sw_context_create(&options, &context, &error_), SW_INVALID_ARGUMENT);
  EXPECT_EQ(context, nullptr);
  options.threads = 2;
  options.flags |= SW_CONTEXT_NO_LEDGER;
  ASSERT_EQ(sw_context_create(&options, &context, &error_), SW_OK) << error_.message;
  EXPECT_EQ(sw_context_warmup(context, -1, &error_), SW_OK) << error_.message;
  EXPECT_EQ(sw_context_warmup(context, -2, &error_), SW_INVALID_ARGUMENT);
  ASSERT_EQ(sw_open(context, path_.c_str(), nullptr, nullptr, &file_, &error_), SW_OK);
  sw_context_destroy(context);  // the file keeps what it needs
  char byte = 0;
  EXPECT_EQ(sw_read_into(file_, &byte, 1, nullptr, nullptr, &error_), SW_OK) << error_.message;
  EXPECT_EQ(byte, bytes_[0]);
}

TEST_F(CApi, SizeFlagShortensAndExactDemands) {
  open();
  std::vector<char> memory(200, 'x');
  auto options = fresh<sw_call_options>();
  options.flags = SW_CALL_SIZE;
  options.size_bytes = 4;
  ASSERT_EQ(sw_read_into(file_, memory.data(), 200, &options, nullptr, &error_), SW_OK);
  EXPECT_EQ(std::string(memory.data(), 5), bytes_.substr(0, 4) + "x");
  options.size_bytes = 0;  // counts, unlike without the flag
  sw_receipt* receipt = nullptr;
  ASSERT_EQ(sw_read_into(file_, memory.data(), 200, &options, &receipt, &error_), SW_OK);
  EXPECT_EQ(sw_receipt_moved_bytes(receipt), 0U);
  sw_receipt_free(receipt);
  options.size_bytes = 201;
  EXPECT_EQ(sw_read_into(file_, memory.data(), 200, &options, nullptr, &error_),
            SW_INVALID_ARGUMENT);
  options.flags = 0;
  options.offset = file_bytes - 77;
  ASSERT_EQ(sw_read_into(file_, memory.data(), 200, &options, &receipt, &error_), SW_OK);
  auto summary = fresh<sw_receipt_summary>();
  ASSERT_EQ(sw_receipt_summarize(receipt, &summary, &error_), SW_OK);
  EXPECT_EQ(summary.moved_bytes, 77U);
  EXPECT_EQ(summary.ended_early, 1);
  EXPECT_EQ(summary.end_of_file, file_bytes);
  sw_receipt_free(receipt);
  options.flags = SW_CALL_EXACT;
  EXPECT_EQ(sw_read_into(file_, memory.data(), 200, &options, &receipt, &error_),
            SW_SHORT_TRANSFER);
  EXPECT_EQ(receipt, nullptr);
  EXPECT_EQ(error_.status, SW_SHORT_TRANSFER);
}
