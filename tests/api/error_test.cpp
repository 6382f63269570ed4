#include <gtest/gtest.h>

#include "straightway/result.hpp"

namespace straightway {
namespace {

TEST(Error, ItsMessageSaysAllOfIt) {
  const Error error{ErrorKind::io,
                    ErrorOrigin::system,
                    5,
                    "read 4096 bytes of",
                    "a.bin",
                    8192,
                    "EIO: Input/output error",
                    "check the drive"};
  EXPECT_EQ(error.message(),
            "cannot read 4096 bytes of 'a.bin' at offset 8192: EIO: Input/output error; check the "
            "drive");
  EXPECT_EQ(
      (Error{ErrorKind::closed, ErrorOrigin::straightway, 0, "read", "", {}, "", ""}.message()),
      "cannot read");
}

TEST(Error, KindsHaveDistinctNames) {
  EXPECT_STREQ(to_string(ErrorKind::forked), "forked");
  EXPECT_STREQ(to_string(ErrorKind::route_refused), "route-refused");
  EXPECT_STREQ(to_string(static_cast<ErrorKind>(200)), "unknown");
}

TEST(Result, ValueThrowsTheError) {
  const Result<int> failed = Error{ErrorKind::io, ErrorOrigin::system, 5, "x", "", {}, "", ""};
  EXPECT_THROW(static_cast<void>(failed.value()), ErrorException);
  EXPECT_EQ(Result<int>(3).value(), 3);
}

}  // namespace
}  // namespace straightway
