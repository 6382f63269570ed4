// Other processes' cuFile statistics are hostile input: pretenders, damaged ones, other versions
// and users.

#include "cufile/published_reader.hpp"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "cufile/gds_stats.hpp"
#include "cufile/statistics.hpp"
#include "tests/receipt/child.hpp"

namespace straightway::cufile {
namespace {

using receipt_tests::Child;
using testing::HasSubstr;

constexpr int all_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

// What a process shows under the name of such statistics.
struct Forgery {
  Published block{};
  std::size_t size_bytes = sizeof(Published);
  int seals = all_seals;
  std::string name{published_name};
};

std::unique_ptr<Forgery> genuine() {
  auto forgery = std::make_unique<Forgery>();
  forgery->block.magic = published_magic;
  forgery->block.version = published_version;
  forgery->block.size_bytes = sizeof(Published);
  forgery->block.level = 3;
  return forgery;
}

bool show(const Forgery& forgery) {
  const int fd = ::memfd_create(forgery.name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  Published block = forgery.block;
  block.pid = ::getpid();
  const std::size_t written = std::min(forgery.size_bytes, sizeof(block));
  return ::write(fd, &block, written) == static_cast<ssize_t>(written) &&
         ::ftruncate(fd, static_cast<off_t>(forgery.size_bytes)) == 0 &&
         (forgery.seals == 0 || ::fcntl(fd, F_ADD_SEALS, forgery.seals) == 0);
}

// Reads a process that shows these, each with its own pid in it.
Result<std::unique_ptr<Published>> read_shown(
    std::initializer_list<std::reference_wrapper<const Forgery>> forgeries) {
  Child child([&](Child& self) {
    for (const Forgery& forgery : forgeries) {
      if (!show(forgery)) return 1;
    }
    self.tell();
    self.listen();
    return 0;
  });
  child.listen();
  return read_published(child.pid());
}

Error error_of(const Forgery& forgery) {
  const auto seen = read_shown({forgery});
  EXPECT_FALSE(seen.ok());
  return seen ? Error{} : seen.error();
}

void expect_pretender(const Forgery& forgery, const char* why) {
  const Error error = error_of(forgery);
  EXPECT_EQ(error.kind, ErrorKind::wrong_file_type);
  EXPECT_THAT(error.why, HasSubstr(why));
  EXPECT_FALSE(error.advice.empty());
}

// A process that counts one read of a MiB, and its body after that.
Child counting(const std::function<int(Child&, Statistics&)>& body) {
  return Child([&body](Child& self) {
    Statistics statistics(1200, 2);
    statistics.count({.flow = Flow::read, .requested_bytes = 1 << 20, .duration_us = 50});
    return body(self, statistics);
  });
}
int stay(Child& self, Statistics&) {
  self.tell();
  self.listen();
  return 0;
}

TEST(PublishedReader, ReadsWhatAProcessCounts) {
  const Child child = counting(stay);
  child.listen();
  const auto seen = read_published(child.pid());
  ASSERT_TRUE(seen.ok()) << seen.error().why;
  EXPECT_EQ((*seen)->pid, child.pid());
  EXPECT_EQ((*seen)->level, 2U);
  EXPECT_EQ((*seen)->level1.read.ok, 1U);
  EXPECT_EQ((*seen)->level1.read_latency_avg_us, 50U);
  EXPECT_EQ((*seen)->read_sizes[9], 1U);
}

TEST(PublishedReader, AStoppedWriterIsReadAndAKilledOneIsGone) {
  Child child = counting(stay);
  child.listen();
  child.kill(SIGSTOP);
  child.wait_stopped();
  const auto stopped = read_published(child.pid());
  ASSERT_TRUE(stopped.ok()) << stopped.error().why;
  EXPECT_EQ((*stopped)->level1.read.ok, 1U);
  const pid_t pid = child.pid();
  child.kill(SIGKILL);
  while (read_published(pid)) {
  }
  EXPECT_EQ(read_published(pid).error().kind, ErrorKind::not_found);
  EXPECT_EQ(child.wait(), -SIGKILL);
  EXPECT_EQ(read_published(pid).error().kind, ErrorKind::not_found);
}

TEST(PublishedReader, AForkedChildIsNotItsParent) {
  void* shared = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* inner_pid = static_cast<pid_t*>(shared);
  Child parent = counting([&](Child& self, Statistics&) {
    const Child inner([&](Child& other) {
      *inner_pid = ::getpid();
      other.tell();
      other.listen();
      return 0;
    });
    inner.listen();
    self.tell();
    self.listen();
    return 0;  // and ends the inner one
  });
  parent.listen();
  EXPECT_EQ(read_published(*inner_pid).error().kind, ErrorKind::not_found);
  EXPECT_TRUE(read_published(parent.pid()).ok());
  parent.tell();
  EXPECT_EQ(parent.wait(), 0);
  ::munmap(shared, 4096);
}

TEST(PublishedReader, AResetKeepsTheNamesOfGpus) {
  const Child child([](Child& self) {
    Statistics statistics(1200, 3);
    statistics.show_gpus(2, [](std::int32_t device) {
      return std::array<char, 16>{static_cast<char>('a' + device)};
    });
    statistics.count(
        {.flow = Flow::read, .requested_bytes = 1, .device = 1, .parts = {.n = 1, .posix = 1}});
    statistics.reset();
    self.tell();
    self.listen();
    return 0;
  });
  child.listen();
  const auto seen = read_published(child.pid());
  ASSERT_TRUE(seen.ok()) << seen.error().why;
  EXPECT_EQ((*seen)->gpu_count, 2U);
  EXPECT_EQ((*seen)->gpus[0].uuid[0], 'a');
  EXPECT_EQ((*seen)->gpus[1].uuid[0], 'b');
  EXPECT_EQ((*seen)->gpus[1].read.n, 0U);
}

TEST(PublishedReader, SeveralCopiesInOneProcessAddUp) {
  const auto first = genuine();
  const auto second = genuine();
  first->block.level = 1;
  first->block.level1.read = {.ok = 3, .err = 1};
  first->block.level1.read_latency_sum_us = 300;
  first->block.gpus[1].read.n = 4;
  second->block.level1.read = {.ok = 1, .err = 0};
  second->block.level1.read_latency_sum_us = 200;
  second->block.gpu_count = 2;
  second->block.gpus[1].read.n = 5;
  second->block.gpus[1].uuid.fill('u');
  for (const auto& [one, other] : {std::pair{&first, &second}, {&second, &first}}) {
    const auto seen = read_shown({**one, **other});
    ASSERT_TRUE(seen.ok()) << seen.error().why;
    EXPECT_EQ((*seen)->level, 3U);
    EXPECT_EQ((*seen)->level1.read.ok, 4U);
    EXPECT_EQ((*seen)->level1.read_latency_avg_us, 100U);
    EXPECT_EQ((*seen)->gpu_count, 2U);
    EXPECT_EQ((*seen)->gpus[1].read.n, 9U);
    EXPECT_EQ((*seen)->gpus[1].uuid[15], 'u');
  }
}

TEST(PublishedReader, WrongMagicSizesAndSeals) {
  auto forgery = genuine();
  forgery->block.magic ^= 1;
  expect_pretender(*forgery, "does not begin like one");
  for (const std::size_t size :
       {std::size_t{24}, sizeof(Published) - 1, sizeof(Published) + 1, std::size_t{1} << 40}) {
    forgery = genuine();
    forgery->size_bytes = size;
    expect_pretender(*forgery, "size is wrong");
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{23}}) {
    forgery = genuine();
    forgery->size_bytes = size;
    expect_pretender(*forgery, "too short");
  }
  forgery = genuine();
  forgery->block.size_bytes = UINT64_MAX;
  expect_pretender(*forgery, "size is wrong");
  for (const int seals :
       {0, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, F_SEAL_GROW | F_SEAL_FUTURE_WRITE}) {
    forgery = genuine();
    forgery->seals = seals;
    expect_pretender(*forgery, "not sealed");
  }
}

TEST(PublishedReader, LevelsAndGpusThatCannotBe) {
  for (const std::uint64_t nonsense : {std::uint64_t{17}, UINT64_MAX}) {
    auto forgery = genuine();
    forgery->block.gpu_count = nonsense;
    expect_pretender(*forgery, "cannot be");
    forgery = genuine();
    forgery->block.level = nonsense;
    expect_pretender(*forgery, "cannot be");
  }
}

TEST(PublishedReader, HugeCountersAreReadAndPrinted) {
  const auto forgery = genuine();
  std::memset(static_cast<void*>(&forgery->block.level1), 0xff,
              sizeof(Published) - offsetof(Published, level1));
  forgery->block.gpu_count = abi::gpu_limit;
  const auto seen = read_shown({*forgery});
  ASSERT_TRUE(seen.ok()) << seen.error().why;
  EXPECT_EQ((*seen)->level1.read.ok, UINT64_MAX);
  EXPECT_THAT(gds_stats_text(**seen, 3), HasSubstr("GPU 15(UUID: ffff"));
}

TEST(PublishedReader, AnotherVersionNamesBoth) {
  for (const std::uint64_t version : {std::uint64_t{0}, published_version + 1, UINT64_MAX}) {
    const auto forgery = genuine();
    forgery->block.version = version;
    forgery->size_bytes = 64;
    forgery->name = "straightway-cufile-2";
    const Error error = error_of(*forgery);
    EXPECT_EQ(error.kind, ErrorKind::unsupported);
    EXPECT_THAT(error.why, HasSubstr("version " + std::to_string(version) + ","));
    EXPECT_THAT(error.why, HasSubstr("reads version " + std::to_string(published_version)));
  }
}

TEST(PublishedReader, AProcessWithoutTheLibraryIsToldWhatToDo) {
  const auto seen = read_published(::getpid());
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.error().kind, ErrorKind::not_found);
  EXPECT_THAT(seen.error().advice, HasSubstr("libcufile.so.0"));
  EXPECT_EQ(read_published(INT64_MAX).error().why, "there is no such process");
  EXPECT_EQ(read_published(0).error().kind, ErrorKind::invalid_argument);
}

TEST(PublishedReader, OtherUsersAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const Child owner = counting(stay);
  owner.listen();
  const pid_t pid = owner.pid();
  Child reader([pid](Child&) {
    if (::setuid(65534) != 0) return 1;
    const auto seen = read_published(pid);
    return !seen && seen.error().kind == ErrorKind::permission ? 0 : 2;
  });
  EXPECT_EQ(reader.wait(), 0);
}

// What has ended belongs to root in /proc until its parent has taken notice.
TEST(PublishedReader, OnesOwnThatHasEndedIsNoOtherUsers) {
  Child reader([](Child&) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return 1;
    const pid_t ended = ::fork();
    if (ended == 0) ::_exit(0);
    siginfo_t info;
    if (::waitid(P_PID, static_cast<id_t>(ended), &info, WEXITED | WNOWAIT) != 0) return 2;
    const auto seen = read_published(ended);
    if (seen) return 3;
    return seen.error().why.find("another user") == std::string::npos ? 0 : 4;
  });
  EXPECT_EQ(reader.wait(), 0);
}

}  // namespace
}  // namespace straightway::cufile
