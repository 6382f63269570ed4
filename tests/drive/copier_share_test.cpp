#include "drive/copier_share.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/temp_file.hpp"

namespace straightway::drive {
namespace {

constexpr auto interval = CopierShare::look_interval_ns;

class CopierShareTest : public ::testing::Test {
 protected:
  CopierShareTest() : path(folder.write("place", {})) {}
  ~CopierShareTest() override { end_other(); }

  CopierShare share_of(const CopierBudget& budget) const {
    return {budget, std::make_unique<os::Neighbours>(path)};
  }
  // Another process that copies with so many until its end.
  void begin_other(std::uint32_t copiers) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    other = ::fork();
    if (other == 0) {
      os::Neighbours neighbours(path);
      neighbours.announce(copiers);
      (void)!::write(ready[1], "r", 1);
      for (;;) ::pause();
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  void end_other() {
    if (other <= 0) return;
    ::kill(other, SIGKILL);
    ::waitpid(other, nullptr, 0);
    other = 0;
  }
  // What another process hears of this one; 0: nothing.
  int heard() const {
    const auto child = ::fork();
    if (child == 0) {
      const auto words = os::Neighbours(path).look(false);
      ::_exit(words.empty() ? 0 : static_cast<int>(words[0]));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  }

  tests::TempFolder folder;
  std::string path;
  pid_t other = 0;
};

TEST_F(CopierShareTest, ANeighbourTakesItsShareWhileItCopies) {
  auto share = share_of({16, 16, false, false});
  const auto limit = share.limit();
  begin_other(16);
  EXPECT_EQ(limit->load(), 16U) << "nobody looked";
  share.keep(true, interval);
  EXPECT_EQ(limit->load(), 8U);
  end_other();
  share.keep(true, 2 * interval - 1);
  EXPECT_EQ(limit->load(), 8U) << "it looks rarely";
  share.keep(true, 2 * interval);
  EXPECT_EQ(limit->load(), 16U);
}

TEST_F(CopierShareTest, ItSaysThatItCopiesUntilAPauseLasts) {
  auto share = share_of({5, 8, false, false});
  EXPECT_EQ(share.keep(false, 1), UINT64_MAX);
  EXPECT_EQ(heard(), 0);
  share.keep(true, interval);
  EXPECT_EQ(heard(), 5);
  EXPECT_EQ(share.keep(false, interval + 1), 2 * interval) << "when to ask again";
  EXPECT_EQ(heard(), 5);
  EXPECT_EQ(share.keep(false, 2 * interval), UINT64_MAX);
  EXPECT_EQ(heard(), 0);
}

TEST_F(CopierShareTest, WhatWasSeenIsForgottenAtRest) {
  auto share = share_of({16, 16, false, false});
  begin_other(16);
  share.keep(true, interval);
  EXPECT_EQ(share.limit()->load(), 8U);
  share.keep(false, 3 * interval);
  EXPECT_EQ(share.limit()->load(), 16U);
  EXPECT_EQ(share.look(), 8U) << "who asks is told";
}

TEST_F(CopierShareTest, ASettingIsNotReduced) {
  auto share = share_of({16, 16, false, true});
  begin_other(16);
  share.keep(true, interval);
  EXPECT_EQ(share.limit()->load(), 16U);
  EXPECT_EQ(share.look(), 16U);
  EXPECT_EQ(heard(), 16) << "others know of it";
}

TEST(CopierShare, WithoutNeighboursItIsTheBudget) {
  CopierShare share({6, 6, false, false}, nullptr);
  EXPECT_EQ(share.keep(true, interval), UINT64_MAX);
  EXPECT_EQ(share.limit()->load(), 6U);
  EXPECT_EQ(share.look(), 6U);
}

}  // namespace
}  // namespace straightway::drive
