// Other processes' ledgers are hostile input: pretenders, damaged ones, other versions and users.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "receipt/ledger.hpp"
#include "receipt/ledger_layout.hpp"
#include "tests/receipt/child.hpp"

namespace straightway::receipt {
namespace {

using receipt_tests::Child;
using receipt_tests::must;
using testing::HasSubstr;

constexpr int all_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

// What a process shows under the name of a ledger.
struct Forgery {
  LedgerLayout layout;
  std::size_t size_bytes = sizeof(LedgerLayout);
  int seals = all_seals;
  std::string name = "straightway-ledger-1";
};

std::unique_ptr<Forgery> genuine() {
  auto forgery = std::make_unique<Forgery>();
  forgery->layout.header = {ledger_magic, layout_version, sizeof(LedgerLayout)};
  ::strcpy(forgery->layout.program.data(), "forger");
  return forgery;
}

// A process that shows the forgery, with its own pid in it.
std::unique_ptr<Child> show(const Forgery& forgery) {
  auto child = std::make_unique<Child>([&forgery](Child& self) {
    const int fd = ::memfd_create(forgery.name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
    LedgerLayout layout = forgery.layout;
    layout.pid = ::getpid();
    const std::size_t written = std::min(forgery.size_bytes, sizeof(layout));
    if (::write(fd, &layout, written) != static_cast<ssize_t>(written)) return 1;
    if (::ftruncate(fd, static_cast<off_t>(forgery.size_bytes)) != 0) return 2;
    if (forgery.seals != 0 && ::fcntl(fd, F_ADD_SEALS, forgery.seals) != 0) return 3;
    self.tell();
    self.listen();
    return 0;
  });
  child->listen();
  return child;
}

Result<LedgerSnapshot> read_shown(const Forgery& forgery) {
  const auto child = show(forgery);
  return read_ledger(child->pid());
}

void expect_pretender(const Forgery& forgery, const char* why) {
  const Result<LedgerSnapshot> seen = read_shown(forgery);
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.error().kind, ErrorKind::wrong_file_type);
  EXPECT_THAT(seen.error().why, HasSubstr(why));
}

TEST(LedgerReader, TheGenuineOneIsRead) {
  const auto forgery = genuine();
  forgery->layout.stripes[3].retries = 7;
  const LedgerSnapshot seen = must(read_shown(*forgery));
  EXPECT_EQ(seen.retries, 7u);
  EXPECT_EQ(seen.program, "forger");
}

TEST(LedgerReader, WrongMagic) {
  const auto forgery = genuine();
  forgery->layout.header.magic ^= 1;
  expect_pretender(*forgery, "does not begin like one");
}

TEST(LedgerReader, WrongSizes) {
  for (const std::size_t size : {std::size_t{24}, sizeof(LedgerLayout) - 1,
                                 sizeof(LedgerLayout) + 1, std::size_t{1} << 40}) {
    const auto forgery = genuine();
    forgery->size_bytes = size;
    expect_pretender(*forgery, "size is wrong");
  }
  const auto forgery = genuine();
  forgery->layout.header.size_bytes = UINT64_MAX;
  expect_pretender(*forgery, "size is wrong");
}

TEST(LedgerReader, TooShortForAHeader) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{23}}) {
    const auto forgery = genuine();
    forgery->size_bytes = size;
    expect_pretender(*forgery, "too short");
  }
}

TEST(LedgerReader, AnySealMissing) {
  for (const int seals :
       {0, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, F_SEAL_GROW | F_SEAL_FUTURE_WRITE}) {
    const auto forgery = genuine();
    forgery->seals = seals;
    expect_pretender(*forgery, "not sealed");
  }
}

TEST(LedgerReader, AnotherVersionNamesBoth) {
  for (const std::uint64_t version : {std::uint64_t{0}, std::uint64_t{2}, UINT64_MAX}) {
    const auto forgery = genuine();
    forgery->layout.header.version = version;
    forgery->size_bytes = 64;  // a version may have any size
    const Result<LedgerSnapshot> seen = read_shown(*forgery);
    ASSERT_FALSE(seen.ok());
    EXPECT_EQ(seen.error().kind, ErrorKind::unsupported);
    EXPECT_THAT(seen.error().why, HasSubstr("version " + std::to_string(version) + ","));
    EXPECT_THAT(seen.error().why, HasSubstr("reads version 1"));
  }
}

TEST(LedgerReader, ANewerNameIsFoundToo) {
  const auto forgery = genuine();
  forgery->name = "straightway-ledger-2";
  forgery->layout.header.version = 2;
  const auto child = show(*forgery);
  EXPECT_EQ(read_ledger(child->pid()).error().kind, ErrorKind::unsupported);
  EXPECT_THAT(find_ledgers(), testing::Contains(child->pid()));
}

TEST(LedgerReader, ADifferentNameIsNoLedger) {
  const auto forgery = genuine();
  forgery->name = "straightway";
  EXPECT_EQ(read_shown(*forgery).error().kind, ErrorKind::not_found);
}

TEST(LedgerReader, PretendersAreNotFound) {
  const auto forgery = genuine();
  forgery->layout.header.magic = 0;
  const auto child = show(*forgery);
  EXPECT_THAT(find_ledgers(), testing::Not(testing::Contains(child->pid())));
}

TEST(LedgerReader, HugeCountsSaturateAndPrint) {
  const auto forgery = genuine();
  for (LedgerStripe& stripe : forgery->layout.stripes) {
    ::memset(static_cast<void*>(&stripe), 0xff, sizeof(stripe));
  }
  forgery->layout.started_ns = UINT64_MAX;
  forgery->layout.program.fill('\x1b');
  const LedgerSnapshot seen = must(read_shown(*forgery));
  EXPECT_EQ(seen.retries, UINT64_MAX);
  EXPECT_EQ(seen.sizes[0][0].bytes, UINT64_MAX);
  EXPECT_EQ(seen.layer.posix, UINT64_MAX);
  EXPECT_EQ(seen.program, std::string(88, '?'));
  EXPECT_THAT(to_text(seen), HasSubstr("18446744073709551615"));
  EXPECT_THAT(to_json(seen), HasSubstr("\"retries\": 18446744073709551615"));
}

TEST(LedgerReader, ARegularFileOfThatNameIsRefused) {
  // Only in the root folder could a file's link look like that of a memfd.
  const std::string path = "/memfd:straightway-ledger-1";
  const int made = ::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (made < 0) GTEST_SKIP() << "cannot create " << path;
  {
    const auto forgery = genuine();
    Child child([&](Child& self) {
      forgery->layout.pid = ::getpid();
      if (::write(made, &forgery->layout, sizeof(LedgerLayout)) < 0) return 1;
      self.tell();
      self.listen();
      return 0;
    });
    child.listen();
    EXPECT_EQ(read_ledger(child.pid()).error().kind, ErrorKind::wrong_file_type);
  }
  ::close(made);
  ::unlink(path.c_str());
}

TEST(LedgerReader, OtherUsersAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  Child owner([](Child& self) {
    const auto ledger = must(Ledger::create());
    self.tell();
    self.listen();
    return 0;
  });
  owner.listen();
  const pid_t pid = owner.pid();
  Child reader([pid](Child&) {
    if (::setuid(65534) != 0) return 1;
    const Result<LedgerSnapshot> seen = read_ledger(pid);
    if (seen || seen.error().kind != ErrorKind::permission) return 2;
    return find_ledgers().empty() ? 0 : 3;
  });
  EXPECT_EQ(reader.wait(), 0);
}

TEST(LedgerReader, RootDoesNotTrustOtherUsersEither) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  Child other([](Child& self) {
    if (::setuid(65534) != 0) return 1;
    const auto ledger = must(Ledger::create());
    self.tell();
    self.listen();
    return 0;
  });
  other.listen();
  EXPECT_EQ(read_ledger(other.pid()).error().kind, ErrorKind::permission);
  EXPECT_THAT(find_ledgers(), testing::Not(testing::Contains(other.pid())));
}

TEST(LedgerReader, NoProcessAndNoNumber) {
  EXPECT_EQ(read_ledger(0).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(read_ledger(-5).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(read_ledger(INT64_MAX).error().kind, ErrorKind::not_found);
  EXPECT_EQ(read_ledger(INT64_MAX).error().why, "there is no such process");
}

}  // namespace
}  // namespace straightway::receipt
