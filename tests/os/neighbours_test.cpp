#include "os/neighbours.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "tests/temp_file.hpp"

namespace straightway::os {
namespace {

using Words = std::vector<std::uint32_t>;

// Another process, which does its work, says so, and waits for its end.
class Other {
 public:
  explicit Other(const std::function<void()>& work) {
    int ready[2];
    if (::pipe(ready) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      work();
      (void)!::write(ready[1], "r", 1);
      for (;;) ::pause();
    }
    char byte = 0;
    (void)!::read(ready[0], &byte, 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Other() { kill(); }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

class NeighboursTest : public ::testing::Test {
 protected:
  // A file of this test's own: other programs may copy at this time.
  NeighboursTest() : path(folder.write("place", {})), here(path) {}
  Words seen(bool same_quota = false) {
    auto words = here.look(same_quota);
    std::sort(words.begin(), words.end());
    return words;
  }

  tests::TempFolder folder;
  std::string path;
  Neighbours here;
};

TEST_F(NeighboursTest, EachOtherProcessIsSeenWithItsCopiersUntilItEnds) {
  EXPECT_EQ(seen(), Words{});
  here.announce(3);
  EXPECT_EQ(seen(), Words{}) << "one's own word is no neighbour";
  Other eight([&] { Neighbours(path).announce(8); });  // the file closes, and the word with it
  EXPECT_EQ(seen(), Words{});
  Neighbours kept(path);
  Other nine([&] { kept.announce(9); });
  Other most([&] { kept.announce(5000); });
  EXPECT_EQ(seen(), (Words{9, 1024}));
  EXPECT_EQ(seen(true), (Words{9, 1024})) << "they are in the same cgroup";
  nine.kill();
  EXPECT_EQ(seen(), Words{1024}) << "a killed process leaves nothing behind";
}

TEST_F(NeighboursTest, TheLastWordCounts) {
  Other other([&] {
    here.announce(12);
    here.announce(4);
  });
  EXPECT_EQ(seen(), Words{4});
  Other silent([&] {
    here.announce(12);
    here.withdraw();
  });
  EXPECT_EQ(seen(), Words{4});
}

TEST_F(NeighboursTest, AForkedChildSaysNothingOfItsParents) {
  here.announce(7);
  int answer[2];
  ASSERT_EQ(::pipe(answer), 0);
  const Other child([&] {
    const auto words = here.look(false);
    const auto copiers = static_cast<char>(words.empty() ? 0 : words[0]);
    (void)!::write(answer[1], &copiers, 1);
  });
  char copiers = 0;
  ASSERT_EQ(::read(answer[0], &copiers, 1), 1);
  EXPECT_EQ(copiers, 7) << "the parent is the child's neighbour";
  EXPECT_EQ(seen(), Words{}) << "and the child is none";
}

void lock(int file, std::int64_t begin, std::int64_t size) {
  struct flock lock{};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = begin;
  lock.l_len = size;
  static_cast<void>(::fcntl(file, F_SETLK, &lock));
}

TEST_F(NeighboursTest, WhoeverSpeaksForOthersIsNotHeard) {
  const auto mine = static_cast<std::int64_t>(::getpid());
  const Descriptor file(::open(path.c_str(), O_RDONLY));
  Other liar([&] {
    lock(file.get(), mine * 1024, 16);
    lock(file.get(), 1024, 16);
    for (std::int64_t i = 0; i < 1000; ++i) lock(file.get(), (mine + 2 * i + 100'000) * 1024, 16);
  });
  Other greedy([&] { lock(file.get(), 0, 0); });
  EXPECT_EQ(seen(), Words{});
  liar.kill();
  greedy.kill();
  Other loud([&] {
    const auto pid = static_cast<std::int64_t>(::getpid());
    lock(file.get(), pid * 1024, 16);
    lock(file.get(), pid * 1024 + 100, 16);
    lock(file.get(), (pid + 1) * 1024, 16);
  });
  EXPECT_EQ(seen(), Words{16}) << "a process counts once";
}

TEST_F(NeighboursTest, OneOnOtherCpusIsNone) {
  cpu_set_t all;
  CPU_ZERO(&all);
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one CPU only";
  cpu_set_t first, last;
  CPU_ZERO(&first);
  CPU_ZERO(&last);
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &all)) continue;
    if (CPU_COUNT(&first) == 0) CPU_SET(i, &first);
    CPU_ZERO(&last);
    CPU_SET(i, &last);
  }
  Other other([&] {
    ::sched_setaffinity(0, sizeof last, &last);
    here.announce(2);
  });
  EXPECT_EQ(seen(), Words{2});
  ASSERT_EQ(::sched_setaffinity(0, sizeof first, &first), 0);
  EXPECT_EQ(seen(), Words{});
  ::sched_setaffinity(0, sizeof all, &all);
}

TEST_F(NeighboursTest, WithoutTheFileNobodyIsSeen) {
  Neighbours none(path + "/none");
  none.announce(3);
  EXPECT_EQ(none.look(false), Words{});
  none.withdraw();
}

TEST(NeighboursOfTheNamespace, AreSeen) {
  Neighbours here;
  Other other([&] { here.announce(11); });
  const auto words = here.look(false);
  if (words.empty()) GTEST_SKIP() << "no locks on the namespace's file here";
  EXPECT_NE(std::find(words.begin(), words.end(), 11U), words.end());
}

}  // namespace
}  // namespace straightway::os
