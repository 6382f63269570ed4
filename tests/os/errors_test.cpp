#include <gtest/gtest.h>

#include <cerrno>

#include "os/facts.hpp"

namespace straightway::os {
namespace {

TEST(Errors, F8_TextHasNameAndMeaning) {
  EXPECT_EQ(errno_text(EIO), "EIO: Input/output error");
  EXPECT_EQ(errno_text(ENOSPC), "ENOSPC: No space left on device");
  EXPECT_EQ(errno_text(99999), "errno 99999: unknown error");
  EXPECT_EQ(errno_text(-5), "errno -5: unknown error");
}

TEST(Errors, KindsThatCallersBranchOn) {
  EXPECT_EQ(errno_kind(ENOENT), ErrorKind::not_found);
  EXPECT_EQ(errno_kind(EISDIR), ErrorKind::wrong_file_type);
  EXPECT_EQ(errno_kind(EACCES), ErrorKind::permission);
  EXPECT_EQ(errno_kind(ENOSPC), ErrorKind::no_space);
  EXPECT_EQ(errno_kind(EDQUOT), ErrorKind::no_space);
  EXPECT_EQ(errno_kind(EFBIG), ErrorKind::no_space);
  EXPECT_EQ(errno_kind(EMFILE), ErrorKind::too_many_files);
  EXPECT_EQ(errno_kind(ENOMEM), ErrorKind::out_of_memory);
  EXPECT_EQ(errno_kind(ENAMETOOLONG), ErrorKind::invalid_argument);
  EXPECT_EQ(errno_kind(ENOSYS), ErrorKind::unsupported);
  EXPECT_EQ(errno_kind(EIO), ErrorKind::io);
  EXPECT_EQ(errno_kind(12345), ErrorKind::io);
}

}  // namespace
}  // namespace straightway::os
