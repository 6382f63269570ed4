#include "drive/account.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace straightway::drive {
namespace {

TEST(Account, OwnCopiesAreObserved) {
  const Evidence copied{EvidenceKind::observed, Witness::own_copy, Scope::request};
  EXPECT_EQ(own_evidence(Route::buffered, Direction::read, 10, -1), copied);
  EXPECT_EQ(own_evidence(Route::staged, Direction::write, 10, -1), copied);
  EXPECT_EQ(own_evidence(Route::buffered, Direction::read, 0, -1), Evidence{});
}

TEST(Account, E6_DirectIsBelievedOnlyWhenTheDiskWasRead) {
  const Evidence seen{EvidenceKind::observed, Witness::thread_io, Scope::request};
  const Evidence claimed{EvidenceKind::claimed, Witness::kernel, Scope::request};
  EXPECT_EQ(own_evidence(Route::direct_host, Direction::read, 4096, 4096), seen);
  EXPECT_EQ(own_evidence(Route::direct_host, Direction::read, 4096, 4095), claimed);
  EXPECT_EQ(own_evidence(Route::direct_host, Direction::read, 4096, 0), claimed);
  EXPECT_EQ(own_evidence(Route::direct_host, Direction::read, 4096, -1), claimed);
  EXPECT_EQ(own_evidence(Route::direct_host, Direction::write, 4096, 4096), claimed);
}

TEST(Account, ErrorsSayWhatWhereAndWhatToDo) {
  const auto error = transfer_error(Direction::write, "a.bin", {4096, 100}, EBADF);
  EXPECT_EQ(error.kind, ErrorKind::permission);
  EXPECT_EQ(error.code, EBADF);
  EXPECT_EQ(error.attempted, "write 100 bytes to");
  EXPECT_EQ(error.path, "a.bin");
  EXPECT_EQ(error.offset, 4096U);
  EXPECT_NE(error.advice.find("'r+'"), std::string::npos);
  EXPECT_EQ(transfer_error(Direction::read, "a", {}, EFAULT).kind, ErrorKind::invalid_argument);
  EXPECT_EQ(transfer_error(Direction::write, "a", {}, ENOSPC).kind, ErrorKind::no_space);
}

}  // namespace
}  // namespace straightway::drive
