// Memory runs out: at each allocation in turn, of the caller's thread or of another.

#include <gtest/gtest.h>
#include <unistd.h>

#include <tuple>

#include "api/engine.hpp"
#include "straightway/file.hpp"
#include "tests/cases/failing_new.hpp"
#include "tests/cases/in_child.hpp"
#include "tests/temp_file.hpp"

namespace straightway {
namespace {

using tests::fail_one;
using tests::none_failed;
using tests::Whose;

class ShortMemory : public testing::Test {
 protected:
  ShortMemory() : bytes(tests::pattern(2 << 20)), path(folder.write("a", bytes)) {}

  tests::TempFolder folder;
  std::vector<char> bytes;
  std::string path;
};

// However a call ends, its file is free again: close() would wait for ever for a lost use.
TEST_F(ShortMemory, EachCallLetsGoOfItsFile) {
  std::vector<char> memory(bytes.size());
  const Memory all{memory.data(), memory.size()};
  const std::vector<RangeRequest> ranges = {
      {0, 1 << 20, {memory.data(), 1 << 20}},
      {1 << 20, 1 << 20, {memory.data() + (1 << 20), 1 << 20}}};
  for (const bool many : {false, true}) {
    bool all_done = false;
    for (long number = 0; !all_done; ++number) {
      ASSERT_LT(number, 5000);
      const auto context = std::move(Context::create()).value();
      auto file = std::move(File::open(path, "r", {}, context)).value();
      std::ignore = file.read_into({memory.data(), 100});
      const auto result = fail_one(Whose::the_callers, number, [&] {
        return many ? file.read_ranges(ranges) : file.read_into(all);
      });
      all_done = none_failed();
      if (result && !*result) {
        EXPECT_EQ(result->error().kind, ErrorKind::out_of_memory);
      }
      ASSERT_TRUE(file.close());
    }
  }
}

// On threads where nobody catches anything: an error of the transfer, not the end of the process.
TEST_F(ShortMemory, OnOtherThreadsItIsTheTransfersError) {
  std::vector<char> memory(bytes.size());
  CallOptions options;
  options.sync = Sync::data;
  for (const bool writes : {false, true}) {
    int failures = 0;
    bool all_done = false;
    for (long number = 0; !all_done; ++number) {
      ASSERT_LT(number, 5000);
      ContextOptions two;
      two.threads = 2;
      const auto context = std::move(Context::create(two)).value();
      auto file = std::move(File::open(path, "r+", {}, context)).value();
      const auto result = fail_one(Whose::the_others, number, [&] {
        return writes ? file.write_from({bytes.data(), bytes.size()}, options)
                      : file.read_into({memory.data(), memory.size()});
      });
      all_done = none_failed();
      ASSERT_TRUE(result);
      if (!*result) {
        ++failures;
        ASSERT_EQ(result->error().kind, ErrorKind::out_of_memory) << result->error().message();
      }
      ASSERT_TRUE(file.read_into({memory.data(), memory.size()}));  // and the next one works
      ASSERT_EQ(memory, bytes);
      ASSERT_TRUE(file.close());
    }
    EXPECT_GT(failures, 0);
  }
}

TEST_F(ShortMemory, H_AForkedChildTriesAgainToMakeItsParts) {
  const auto context = std::move(Context::create()).value();
  const auto file = std::move(File::open(path, "r", {}, context)).value();
  std::vector<char> memory(bytes.size());
  EXPECT_EQ(tests::in_child([&] {
              ::alarm(60);
              const Memory all{memory.data(), memory.size()};
              const auto failed =
                  fail_one(Whose::the_callers, 0, [&] { return file.read_into(all); });
              if (failed) return 1;
              return file.read_into(all) && memory == bytes ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace straightway
