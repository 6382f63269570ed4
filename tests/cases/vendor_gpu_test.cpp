// Bad days of the vendor's library: answers that cannot be, and ends while its calls are under way.

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "tests/api/vendor_fixture.hpp"
#include "tests/cases/in_child.hpp"

namespace straightway {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;
using testing::HasSubstr;

class VendorCases : public VendorCall {
 protected:
  // What the test leaves held must not keep the Context from ending.
  ~VendorCases() override {
    cufile.hold(0);
    file = {};
    context.reset();
    EXPECT_EQ(cufile.registrations(), cufile.deregistrations());
    EXPECT_EQ(cufile.torn(), 0U);
  }
  static CallOptions bypass() {
    CallOptions options;
    options.cache = Cache::bypass;
    return options;
  }
  void wait_for_held(std::uint64_t count = 1) const {
    while (cufile.held() < count) std::this_thread::yield();
  }
  // Looks for a while: what is to happen only later must not have happened yet.
  static void expect_running(const Job& job) {
    for (int i = 0; i < 20; ++i) {
      EXPECT_FALSE(job.done());
      std::this_thread::sleep_for(1ms);
    }
  }
};

TEST_F(VendorCases, ACancelledJobEndsAfterTheCallsUnderWay) {
  cufile.hold(1);
  auto job = file.submit_read(memory(), direct()).value();
  wait_for_held();
  EXPECT_TRUE(job.cancel());
  expect_running(job);
  EXPECT_GT(cufile.buffers(), 0U);
  cufile.hold(0);
  const auto result = job.result();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::cancelled);
  EXPECT_EQ(cufile.buffers(), 0U);
  EXPECT_EQ(cufile.held(), 0U);
  EXPECT_EQ(share(file.read_into(memory(), direct()).value(), Route::nvfs).bytes, size);
  expect_arrived(size);
}

TEST_F(VendorCases, ADeadlineEndsAfterTheCallsUnderWay) {
  cufile.hold(1);
  auto options = direct();
  options.deadline = 200ms;
  auto job = file.submit_read(memory(), options).value();
  wait_for_held();
  std::this_thread::sleep_for(250ms);
  expect_running(job);
  cufile.hold(0);
  const auto result = job.result();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::deadline_exceeded);
  EXPECT_EQ(cufile.buffers(), 0U);
}

TEST_F(VendorCases, AFileIsTakenBackAfterTheCallsUnderWay) {
  cufile.hold(1);
  auto job = file.submit_read(memory(), direct()).value();
  wait_for_held();
  std::atomic<bool> closed = false;
  std::thread closer([&] {
    EXPECT_TRUE(file.close());
    closed = true;
  });
  expect_running(job);
  EXPECT_FALSE(closed.load());
  EXPECT_EQ(cufile.handles(), 1U);
  cufile.hold(0);
  closer.join();
  EXPECT_EQ(cufile.handles(), 0U);
  EXPECT_EQ(share(job.result().value(), Route::nvfs).bytes, size);
  expect_arrived(size);
}

TEST_F(VendorCases, AForkedChildLeavesTheParentsRegistrationsAlone) {
  cufile.hold(1);
  auto job = file.submit_read(memory(), direct()).value();
  wait_for_held();
  const int status = tests::in_child([&] {
    std::vector<char> host(mib);
    const auto read = file.read_into(Memory{host.data(), host.size()});
    if (!read || !std::equal(host.begin(), host.end(), bytes.begin())) return 1;
    if (file.read_into(memory(), direct())) return 2;
    EXPECT_TRUE(file.close());
    file = {};
    context.reset();
    return cufile.handles() == 1 && cufile.open_count() == 1 ? 0 : 3;
  });
  EXPECT_EQ(status, 0);
  cufile.hold(0);
  EXPECT_EQ(share(job.result().value(), Route::nvfs).bytes, size);
  expect_arrived(size);
}

TEST_F(VendorCases, AnswersThatCannotBeFailTheTransfer) {
  for (const std::int64_t answer : {INT64_MIN, std::int64_t{-7000}, std::int64_t{99 * mib}}) {
    cufile.answer_transfers(1, answer, 0);
    const auto failed = file.read_into(memory(), bypass());
    ASSERT_FALSE(failed) << answer;
    EXPECT_EQ(failed.error().code, EIO);
  }
  EXPECT_EQ(share(file.read_into(memory(), direct()).value(), Route::nvfs).bytes, size);
}

TEST_F(VendorCases, AnEndThatIsNoneIsReadAnotherWay) {
  cufile.answer_transfers(1, 0, 0);
  const auto receipt = file.read_into(memory(), bypass()).value();
  EXPECT_EQ(receipt.moved_bytes, size);
  EXPECT_FALSE(receipt.ended_early);
  EXPECT_EQ(share(receipt, Route::staged).reason, Reason::fell_back);
  expect_arrived(size);
  cufile.answer_transfers(1, 0, 0);
  const auto refused = file.read_into(memory(), direct());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::route_refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("said that the file ends"));
  EXPECT_EQ(share(file.read_into(memory(), direct()).value(), Route::nvfs).bytes, size);
}

TEST_F(VendorCases, AFileThatShrinksMeanwhileEndsWhereItEnds) {
  for (const std::uint64_t left : {5 * mib, 5 * mib + 100, std::uint64_t{0}}) {
    cufile.hold(1);
    auto job = file.submit_read(memory(), direct()).value();
    wait_for_held();
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(left)), 0);
    cufile.hold(0);
    const auto receipt = job.result().value();
    EXPECT_EQ(receipt.moved_bytes, left);
    EXPECT_TRUE(receipt.ended_early);
    EXPECT_EQ(receipt.end_of_file, left);
    expect_arrived(left);
    tree.write("file", {bytes.data(), bytes.size()});
  }
}

TEST_F(VendorCases, AShorterRegistrationOfTheProgramsIsNoRefusalOfTheStorage) {
  cufile.answer_buffer(5023);
  cufile.answer_transfers(1, -1, 5017);
  const auto receipt = file.read_into(memory(), bypass()).value();
  EXPECT_EQ(receipt.moved_bytes, size);
  EXPECT_EQ(receipt.fallback_code, 5017);
  expect_arrived(size);
  cufile.answer_buffer(0);
  EXPECT_EQ(share(file.read_into(memory(), direct()).value(), Route::nvfs).bytes, size);
}

TEST_F(VendorCases, HostileCountersMakeNothingObserved) {
  cufile.kernel_stats(nullptr, 0);
  for (const char* text :
       {"", "IO stats: Enabled, \nReads : n=-1 err=0 readMiB=0\nWrites : n=0 err=0 writeMiB=0\n",
        "IO stats: Enabled, \nReads : n=18446744073709551615 err=18446744073709551615 "
        "readMiB=18446744073709551615\nWrites : n=0 err=0 writeMiB=0\n"}) {
    tree.write("proc/driver/nvidia-fs/stats", text);
    const auto receipt = file.read_into(memory(), bypass()).value();
    EXPECT_EQ(receipt.moved_bytes, size);
    EXPECT_NE(share(receipt, Route::nvfs).evidence.kind, EvidenceKind::observed) << text;
  }
}

TEST_F(VendorCases, TwoContextsAndManyThreadsAtOnce) {
  ContextOptions options;
  options.vendor_library = FAKES_DIR "/cufile/libcufile.so.0";
  auto second = Context::around(Engine::create(options, os::kernel(), tree.root()).value());
  auto other = File::open(path, "r", {}, second).value();
  const auto others = user_memory(size);
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      const auto offset = i % 3 * 4 * mib;
      auto& from = i < 3 ? file : other;
      const Memory into{reinterpret_cast<void*>((i < 3 ? device : others) + offset), 4 * mib};
      for (int round = 0; round < 10; ++round) {
        const auto receipt = from.read_into(into, direct(offset)).value();
        EXPECT_EQ(share(receipt, Route::nvfs).bytes, 4 * mib);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  expect_arrived(size);
  EXPECT_EQ(cufile.open_count(), 2U);
  EXPECT_EQ(cufile.handles(), 2U);
  other = {};
  second.reset();
  EXPECT_EQ(cufile.open_count(), 1U);
  EXPECT_EQ(share(file.read_into(memory(), direct()).value(), Route::nvfs).bytes, size);
}

TEST_F(VendorCases, OneArrayGoesToTwoFilesAtOnce) {
  fake_.write(device, bytes.data(), size);
  const auto copy = tree.write("copy", {bytes.data(), bytes.size()});
  auto other = File::open(copy, "r+", {}, context).value();
  cufile.hold(1);
  auto first = file.submit_write(memory(4 * mib), direct()).value();
  auto second = other.submit_write(memory(4 * mib), direct()).value();
  wait_for_held();
  cufile.let_go(1);
  std::this_thread::sleep_for(5ms);
  cufile.hold(0);
  EXPECT_EQ(share(first.result().value(), Route::nvfs).bytes, 4 * mib);
  EXPECT_EQ(share(second.result().value(), Route::nvfs).bytes, 4 * mib);
}

TEST_F(VendorCases, ARelativePathIsRefusedWhenTheContextIsMade) {
  for (const char* wanted : {"libcufile.so.0", "./libcufile.so.0", "NONE"}) {
    ContextOptions options;
    options.vendor_library = wanted;
    const auto refused = Engine::create(options, os::kernel(), tree.root());
    ASSERT_FALSE(refused) << wanted;
    EXPECT_THAT(refused.error().message(), HasSubstr("absolute"));
  }
}

TEST_F(VendorCases, WhatIsNoLibraryIsNoWay) {
  const std::string no_library = tree.write("no-library", "text");
  for (const std::string& wanted :
       {tree.root(), no_library, tree.root() + "/nowhere",
        std::string(FAKES_DIR "/cuda/libcuda.so.1"), std::string(OWN_CUFILE)}) {
    ContextOptions options;
    options.vendor_library = wanted;
    auto made = Context::around(Engine::create(options, os::kernel(), tree.root()).value());
    auto opened = File::open(path, "r", {}, made).value();
    const auto refused = opened.read_into(memory(), direct());
    ASSERT_FALSE(refused) << wanted;
    EXPECT_EQ(refused.error().kind, ErrorKind::route_refused);
    EXPECT_THAT(refused.error().message(),
                AnyOf(HasSubstr("'" + wanted + "' is no libcufile.so.0 of NVIDIA's"),
                      HasSubstr("does not export")));
    EXPECT_EQ(opened.read_into(memory(), bypass()).value().moved_bytes, size);
  }
  EXPECT_EQ(cufile.calls(), 0U);
}

}  // namespace
}  // namespace straightway
