// Pins, on the simulated GPU and the real kernel.

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "straightway/straightway.h"
#include "tests/api/pin_fixture.hpp"
#include "tests/cases/in_child.hpp"

namespace straightway {
namespace {

using tests::PinTest;

TEST_F(PinTest, PinnedReadsNeedNoRing) {
  const auto file = open();
  auto pin = file.pin();
  ASSERT_TRUE(pin) << pin.error().message();
  EXPECT_TRUE(pin->holds());
  EXPECT_EQ(pin->size_bytes(), file_bytes);
  const auto rounded = (file_bytes + page - 1) / page * page;
  EXPECT_EQ(held_bytes(), rounded);
  const auto receipt = read_right(file);
  EXPECT_EQ(moved(receipt, Route::pinned_cache), file_bytes);
  EXPECT_EQ(receipt.routes[index(Route::pinned_cache)].reason, Reason::pinned);
  EXPECT_EQ(receipt.routes[index(Route::pinned_cache)].evidence.kind, EvidenceKind::observed);
  EXPECT_EQ(receipt.pin_bytes, file_bytes);
  EXPECT_EQ(receipt.pinned_bytes, 0U);
  EXPECT_EQ(receipt.retries + receipt.fallbacks, 0U);
  pin->release();
  pin->release();
  EXPECT_FALSE(pin->holds());
  EXPECT_EQ(held_bytes(), 0U);
  EXPECT_EQ(moved(read_right(file), Route::staged), file_bytes);
  EXPECT_EQ(warnings, 0);
}

TEST_F(PinTest, EveryOffsetSizeAndPointer) {
  const auto file = open();
  const auto pin = file.pin();
  ASSERT_TRUE(pin) << pin.error().message();
  for (const std::uint64_t offset : {0UL, 1UL, 4095UL, 4096UL, 4097UL, (1UL << 20) + 5}) {
    for (const std::uint64_t size : {1UL, 100UL, 4096UL, 70000UL, 2UL << 20}) {
      wipe();
      const auto shift = offset % 13;
      CallOptions options;
      options.offset = offset;
      const auto receipt = file.read_into(at(device + shift, size), options);
      ASSERT_TRUE(receipt) << receipt.error().message();
      const auto want = std::min<std::uint64_t>(size, file_bytes - offset);
      EXPECT_EQ(receipt->moved_bytes, want);
      EXPECT_EQ(moved(*receipt, Route::pinned_cache), want);
      const auto got = Gpu::device_chars(device + shift, want + 1);
      ASSERT_TRUE(std::equal(got.begin(), got.end() - 1,
                             bytes.begin() + static_cast<std::ptrdiff_t>(offset)));
      EXPECT_EQ(got.back(), 'x');
    }
  }
}

TEST_F(PinTest, NothingBehindTheEndIsRead) {
  const auto file = open();
  const auto pin = file.pin();
  ASSERT_TRUE(pin) << pin.error().message();
  for (const std::uint64_t before_end : {0UL, 1UL, 300UL}) {
    wipe();
    CallOptions options;
    options.offset = file_bytes - before_end;
    const auto receipt = file.read_into(at(device, 1000), options);
    ASSERT_TRUE(receipt) << receipt.error().message();
    EXPECT_EQ(receipt->moved_bytes, before_end);
    EXPECT_TRUE(receipt->ended_early);
    const auto got = device_chars(before_end + 1);
    EXPECT_TRUE(std::equal(got.begin(), got.end() - 1,
                           bytes.end() - static_cast<std::ptrdiff_t>(before_end)));
    EXPECT_EQ(got.back(), 'x');
  }
}

TEST_F(PinTest, ReadsPartlyOutsideAreSplit) {
  const auto file = open();
  PinOptions options;
  options.ranges = {{5 * page + 1, 10 * page}};
  const auto pin = file.pin(options);
  ASSERT_TRUE(pin) << pin.error().message();
  const auto receipt = read_right(file);
  EXPECT_EQ(moved(receipt, Route::pinned_cache), 11 * page);  // whole pages
  EXPECT_EQ(moved(receipt, Route::staged), file_bytes - 11 * page);
  EXPECT_GT(receipt.pinned_bytes, 0U);
  const auto plan = file.explain(Direction::read, at(device, file_bytes));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->run_count, 3);
  EXPECT_EQ(plan->pin_bytes, 11 * page);
  EXPECT_NE(plan->to_text().find("pinned-cache"), std::string::npos);
}

TEST_F(PinTest, RangesMayOverlapNestAndReachBeyondTheEnd) {
  const auto file = open();
  PinOptions options;
  options.ranges = {{8 * page, page}, {0, 4 * page}, {2 * page, 3 * page}, {file_bytes, 1}, {7, 0}};
  auto first = file.pin(options);
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(held_bytes(), 6 * page);
  options.ranges = {{3 * page, 1 << 30}};
  auto second = file.pin(options);
  ASSERT_TRUE(second) << second.error().message();
  const auto rounded = (file_bytes + page - 1) / page * page;
  EXPECT_EQ(held_bytes(), rounded);  // what was pinned is shared
  EXPECT_EQ(moved(read_right(file), Route::pinned_cache), file_bytes);
  first->release();
  EXPECT_TRUE(second->holds());
  EXPECT_EQ(moved(read_right(file), Route::pinned_cache), file_bytes);  // the shared ones stay
  second->release();
  EXPECT_EQ(moved(read_right(file), Route::pinned_cache), 0U);
  options.ranges = std::vector<FileRange>{};
  const auto none = file.pin(options);
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->holds());
  options.ranges = {{std::uint64_t{1} << 63, 1}};
  EXPECT_EQ(file.pin(options).error().kind, ErrorKind::invalid_argument);
}

TEST_F(PinTest, TwoFilesOfOneInodePinApart) {
  const auto one = open();
  auto two = open();
  const auto first = one.pin();
  const auto second = two.pin();
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(two.close());
  EXPECT_FALSE(second->holds());
  EXPECT_EQ(moved(read_right(one), Route::pinned_cache), file_bytes);
}

TEST_F(PinTest, AnotherDeviceReadsThePagesToo) {
  const auto file = open();
  const auto pin = file.pin();
  ASSERT_TRUE(pin);
  const auto other = fake_.allocate(1, file_bytes);
  const auto receipt = file.read_into(at(other, file_bytes));
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_EQ(moved(*receipt, Route::pinned_cache), file_bytes);
  EXPECT_TRUE(Gpu::device_chars(other, file_bytes) == bytes);
  fake_.release(other);
}

TEST_F(PinTest, PoliciesWritesAndHostMemoryGoTheirOwnWay) {
  const auto file = open(path, "r+");
  const auto pin = file.pin();
  ASSERT_TRUE(pin) << pin.error().message();
  CallOptions options;
  options.policy = Policy::staged;
  const auto staged = file.read_into(at(device, file_bytes), options);
  ASSERT_TRUE(staged);
  EXPECT_EQ(moved(*staged, Route::staged), file_bytes);
  EXPECT_EQ(staged->refused[index(Route::pinned_cache)], Reason::policy_forbids);
  std::vector<char> host(file_bytes);
  ASSERT_TRUE(file.read_into({host.data(), host.size()}));
  EXPECT_TRUE(host == bytes);
  const auto plan = file.explain(Direction::write, at(device, page));
  EXPECT_EQ(plan->refused[index(Route::pinned_cache)], Reason::pinned_for_reads);
  // Writes of ours change the file as others' do.
  ASSERT_TRUE(file.write_from(at(device, page)));
  EXPECT_EQ(moved(read_right(file), Route::staged), file_bytes);
  EXPECT_FALSE(pin->holds());
  EXPECT_EQ(warnings, 1);
}

TEST_F(PinTest, TheBudgetIsAHardLimit) {
  ContextOptions limited;
  limited.pin_bytes = 10 * page;
  make_context(limited);
  warm();
  const auto file = open();
  EXPECT_EQ(file.pin().error().kind, ErrorKind::out_of_memory);
  EXPECT_EQ(held_bytes(), 0U);
  PinOptions options;
  options.ranges = {{0, 10 * page}};
  auto pin = file.pin(options);
  ASSERT_TRUE(pin) << pin.error().message();
  options.ranges = {{10 * page, 1}};
  const auto more = file.pin(options);
  ASSERT_FALSE(more);
  EXPECT_NE(more.error().message().find("STRAIGHTWAY_PIN_BYTES"), std::string::npos);
  pin->release();
  EXPECT_TRUE(file.pin(options));
}

TEST_F(PinTest, WhatCannotBePinnedIsRefusedWithTheReason) {
  const auto refused = [](const File& file) { return file.pin().error().message(); };
  const auto write_only = open(folder.path("w"), "w");
  EXPECT_EQ(write_only.pin().error().kind, ErrorKind::permission);
  EXPECT_NE(refused(open("/proc/self/status")).find("proc"), std::string::npos);
  OpenOptions door;
  door.door = Door::kvikio;
  EXPECT_NE(refused(std::move(File::open(path, "r", door, context)).value()).find("door"),
            std::string::npos);
  fake_.fail_next("cuDeviceGetAttribute", 1, memory::cuda::invalid_value);
  EXPECT_EQ(open().pin().error().kind, ErrorKind::unsupported);
  fake_.fail_next("cuMemHostRegister", 1, memory::cuda::not_supported);
  EXPECT_NE(refused(open()).find("NOT_SUPPORTED"), std::string::npos);
  auto closed = open();
  ASSERT_TRUE(closed.close());
  EXPECT_EQ(closed.pin().error().kind, ErrorKind::closed);
  EXPECT_EQ(held_bytes(), 0U);
}

TEST_F(PinTest, ClosingTheFileEndsItsPins) {
  auto file = open();
  auto pin = file.pin();
  ASSERT_TRUE(pin);
  ASSERT_TRUE(file.close());
  EXPECT_FALSE(pin->holds());
  EXPECT_EQ(held_bytes(), 0U);
  context.reset();
  pin->release();
}

TEST_F(PinTest, ReleaseWaitsForTheCopiesOfARead) {
  const auto file = open();
  auto pin = file.pin();
  ASSERT_TRUE(pin);
  fake_.hold_copies(1);
  const auto copies = fake_.calls_of("cuMemcpyHtoDAsync");
  const auto job = file.submit_read(at(device, file_bytes));
  ASSERT_TRUE(job);
  while (fake_.calls_of("cuMemcpyHtoDAsync") == copies) std::this_thread::yield();
  std::atomic<bool> released{false};
  std::thread releasing([&] {
    pin->release();
    released = true;
  });
  while (pin->holds()) std::this_thread::yield();
  EXPECT_FALSE(released);
  EXPECT_GE(held_bytes(), file_bytes);
  fake_.hold_copies(0);
  const auto receipt = job->result();
  releasing.join();
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_TRUE(device_chars(file_bytes) == bytes);
  EXPECT_EQ(moved(*receipt, Route::pinned_cache), file_bytes);
  EXPECT_EQ(warnings, 0);
}

// It would hold up the thread that every copy waits for.
TEST_F(PinTest, ACallbackCannotPin) {
  const auto file = open();
  std::optional<ErrorKind> refused;
  CallOptions options;
  options.on_progress = [&](const Progress&) {
    const auto pin = file.pin();
    refused = pin ? std::optional<ErrorKind>() : pin.error().kind;
  };
  ASSERT_TRUE(file.read_into(at(device, file_bytes), options));
  EXPECT_EQ(refused, ErrorKind::invalid_argument);
  EXPECT_EQ(held_bytes(), 0U);
}

TEST_F(PinTest, AForkedChildLeavesThePinsAlone) {
  auto file = open();
  auto pin = file.pin();
  ASSERT_TRUE(pin);
  EXPECT_EQ(tests::in_child([&] {
              if (pin->holds()) return 1;
              if (file.pin().error().kind != ErrorKind::forked) return 2;
              pin->release();
              std::vector<char> host(file_bytes);
              if (!file.read_into({host.data(), host.size()}) || host != bytes) return 3;
              if (!file.close()) return 4;
              return 0;
            }),
            0);
  EXPECT_TRUE(pin->holds());
  EXPECT_EQ(moved(read_right(file), Route::pinned_cache), file_bytes);
}

TEST_F(PinTest, ALostDeviceGivesThePinUp) {
  const auto file = open();
  const auto pin = file.pin();
  ASSERT_TRUE(pin);
  const auto other = fake_.allocate(1, file_bytes);
  fake_.lose_device(0);
  const auto receipt = file.read_into(at(other, file_bytes));
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_EQ(moved(*receipt, Route::staged), file_bytes);
  EXPECT_TRUE(Gpu::device_chars(other, file_bytes) == bytes);
  EXPECT_EQ(warnings, 1);
  fake_.release(other);
}

TEST_F(PinTest, AFailedCopyIsAnErrorAndLeaksNoPages) {
  auto file = open();
  auto pin = file.pin();
  ASSERT_TRUE(pin);
  fake_.fail_copies(memory::cuda::launch_failed);
  EXPECT_EQ(file.read_into(at(device, file_bytes)).error().kind, ErrorKind::device);
  fake_.heal();
  pin->release();
  EXPECT_FALSE(pin->holds());
}

TEST_F(PinTest, TheCAbiPinsToo) {
  sw_error error{};
  SW_INIT(&error);
  sw_context_options options{};
  SW_INIT(&options);
  options.flags = SW_CONTEXT_PIN_BYTES;
  options.pin_bytes = 20 * page;
  sw_context* c_context = nullptr;
  ASSERT_EQ(sw_context_create(&options, &c_context, &error), SW_OK) << error.message;
  sw_file* file = nullptr;
  ASSERT_EQ(sw_open(c_context, path.c_str(), "r", nullptr, &file, &error), SW_OK) << error.message;
  sw_pin* pin = nullptr;
  EXPECT_EQ(sw_file_pin(file, nullptr, 0, -1, &pin, &error), SW_OUT_OF_MEMORY);
  EXPECT_EQ(pin, nullptr);
  EXPECT_EQ(sw_file_pin(file, nullptr, 1, -1, &pin, &error), SW_INVALID_ARGUMENT);
  const sw_file_range range{page, 5};
  ASSERT_EQ(sw_file_pin(file, &range, 1, -1, &pin, &error), SW_OK) << error.message;
  EXPECT_EQ(sw_pin_holds(pin), 1);
  sw_call_options call{};
  SW_INIT(&call);
  call.offset = page;
  sw_receipt* receipt = nullptr;
  ASSERT_EQ(sw_read_into(file, reinterpret_cast<void*>(device), page, &call, &receipt, &error),
            SW_OK);
  sw_receipt_summary summary{};
  SW_INIT(&summary);
  ASSERT_EQ(sw_receipt_summarize(receipt, &summary, &error), SW_OK);
  EXPECT_EQ(summary.pin_bytes, page);
  sw_receipt_free(receipt);
  sw_pin_release(pin);
  ASSERT_EQ(sw_file_pin(file, &range, 0, -1, &pin, &error), SW_OK);  // of nothing
  EXPECT_EQ(sw_pin_holds(pin), 0);
  sw_pin_release(pin);
  ASSERT_EQ(sw_file_pin(file, &range, 1, -1, &pin, &error), SW_OK);
  const auto held = held_bytes();
  sw_file_free(file);
  EXPECT_EQ(held_bytes(), held - page);
  EXPECT_EQ(sw_pin_holds(pin), 0);
  sw_pin_release(pin);
  sw_pin_release(nullptr);
  EXPECT_EQ(sw_pin_holds(nullptr), 0);
  sw_context_destroy(c_context);
}

}  // namespace
}  // namespace straightway
