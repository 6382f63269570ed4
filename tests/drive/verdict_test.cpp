#include "drive/verdict.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace straightway::drive {
namespace {

Verdict read_verdict(std::int64_t result, bool direct_io = false, std::uint32_t attempts = 0) {
  return judge(Direction::read, result, 100, direct_io, attempts);
}

TEST(Verdict, AllShortAndNothing) {
  EXPECT_EQ(read_verdict(100), Verdict::done);
  EXPECT_EQ(read_verdict(99), Verdict::rest);
  EXPECT_EQ(read_verdict(1), Verdict::rest);
  EXPECT_EQ(read_verdict(0), Verdict::end_of_file);
  EXPECT_EQ(judge(Direction::write, 0, 100, false, 0), Verdict::again);
  EXPECT_EQ(judge(Direction::write, 0, 100, false, attempts_limit), Verdict::fail);
}

TEST(Verdict, A2_InterruptedIsTriedAgainWithinALimit) {
  EXPECT_EQ(read_verdict(-EINTR), Verdict::again);
  EXPECT_EQ(read_verdict(-EAGAIN, false, attempts_limit - 1), Verdict::again);
  EXPECT_EQ(read_verdict(-EINTR, false, attempts_limit), Verdict::fail);
}

TEST(Verdict, E12_OnlyListedErrorsFallBack) {
  EXPECT_EQ(read_verdict(-EINVAL, true), Verdict::fall_back);
  EXPECT_EQ(read_verdict(-EOPNOTSUPP, true), Verdict::fall_back);
  for (const int code : {EINVAL, EOPNOTSUPP, EIO, EFAULT, EBADF, ENOSPC, EDQUOT, EFBIG, EPERM}) {
    EXPECT_EQ(read_verdict(-code, false), Verdict::fail) << code;
  }
  for (const int code : {EIO, EFAULT, EBADF, ENOSPC, EDQUOT, EFBIG, EPERM}) {
    EXPECT_EQ(read_verdict(-code, true), Verdict::fail) << code;
  }
}

TEST(Verdict, E12_PeerMemoryFallsBackOnWhatItsWaysAnswer) {
  const auto verdict = [](int code, bool direct_io) {
    return judge(Direction::read, -code, 100, direct_io, 0, Route::p2pdma);
  };
  for (const int code : {EREMOTEIO, EINVAL, EFAULT, EOPNOTSUPP}) {
    EXPECT_EQ(verdict(code, true), Verdict::fall_back) << code;
    EXPECT_EQ(verdict(code, false), Verdict::fail) << code;
  }
  for (const int code : {EIO, EBADF, ENOSPC}) EXPECT_EQ(verdict(code, true), Verdict::fail) << code;
  EXPECT_EQ(read_verdict(-EREMOTEIO, true), Verdict::fail);  // host memory
}

TEST(Verdict, E12_TheVendorsLibraryFallsBackOnListedCodesAlone) {
  const auto verdict = [](int code, Route route = Route::nvfs) {
    return judge(Direction::read, -code, 100, true, 0, route);
  };
  for (const int code : {5001, 5007, 5008, 5010, 5016, 5027, 5033, 5036, 5048, EINVAL}) {
    EXPECT_EQ(verdict(code), Verdict::fall_back) << code;
  }
  // Of the GPU, the arguments, the drive.
  for (const int code : {5011, 5012, 5014, 5022, 5025, 5044, 5999, EIO, ENOSPC, EFAULT}) {
    EXPECT_EQ(verdict(code), Verdict::fail) << code;
  }
  EXPECT_EQ(verdict(5008, Route::staged), Verdict::fail);
  for (const int code : {5008, 5036, EREMOTEIO, EFAULT}) {
    EXPECT_EQ(verdict(code, Route::p2pdma), Verdict::fall_back) << code;
  }
  for (const int code : {5011, 5022, 5044, EIO}) {
    EXPECT_EQ(verdict(code, Route::p2pdma), Verdict::fail) << code;
  }
}

}  // namespace
}  // namespace straightway::drive
