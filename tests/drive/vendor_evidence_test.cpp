#include "drive/vendor_evidence.hpp"

#include <gtest/gtest.h>

namespace straightway::drive {
namespace {

using transport::CufileCounts;

constexpr std::uint64_t mib = 1 << 20;

// Four calls of 4 MiB, counted as direct by both.
struct Look {
  CufileCounts before;
  CufileCounts after;
  Look() {
    before = {true, 10, 10 * mib, true, 70, 1, 700, true, 20, 5, 3, true};
    after = before;
    after.calls += 4;
    after.bytes += 16 * mib;
    after.kernel_calls += 4;
    after.kernel_mib += 16;
    after.nvfs += 4;
  }
  CufileSaid said(std::uint64_t own_bytes = 16 * mib) const {
    return what_counters_say(before, after, own_bytes);
  }
};

TEST(VendorEvidence, ExactCountersOfTheKernelConfirm) {
  Look look;
  EXPECT_EQ(look.said(), CufileSaid::kernel_counted);
  ++look.after.kernel_mib;  // a fraction of a MiB was there before
  EXPECT_EQ(look.said(), CufileSaid::kernel_counted);
}

TEST(VendorEvidence, WhatDoesNotMatchExactlyProvesNothing) {
  for (const int change : {1, 2, 3, 4, 5}) {
    Look look;
    look.before.cufile_counts = false;
    if (change == 1) ++look.after.kernel_calls;  // of another program
    if (change == 2) look.after.kernel_mib += 2;
    if (change == 3) ++look.after.kernel_failed;
    if (change == 4) --look.after.kernel_calls;
    if (change == 5) look.after.kernel_calls = 4;  // somebody set it to zero
    EXPECT_EQ(look.said(), CufileSaid::nothing) << change;
    look.before.cufile_counts = true;  // whose word is then all there is
    EXPECT_EQ(look.said(), CufileSaid::library_counted) << change;
  }
}

TEST(VendorEvidence, CallsUnderWayProveNothing) {
  Look look;
  look.after.quiet = false;
  EXPECT_EQ(look.said(), CufileSaid::nothing);
  look = {};
  look.before.quiet = false;
  EXPECT_EQ(look.said(), CufileSaid::nothing);
}

TEST(VendorEvidence, E6_PosixCountsOfTheLibraryAreTakenAtTheirWord) {
  Look look;
  look.after.nvfs -= 4;
  look.after.posix += 4;
  EXPECT_EQ(look.said(), CufileSaid::copied);
  look.after.nvfs += 2;  // some of them is enough
  look.after.posix -= 2;
  EXPECT_EQ(look.said(), CufileSaid::copied);
  look.after.posix += 9;  // somebody else's too, or parts of ours: whose they are cannot be told
  look.after.kernel_counts = false;
  EXPECT_EQ(look.said(), CufileSaid::nothing);
}

TEST(VendorEvidence, AKernelThatSawNothingIsBelievedBeforeTheLibrary) {
  Look look;
  look.after.kernel_calls = look.before.kernel_calls;
  look.after.kernel_mib = look.before.kernel_mib;
  EXPECT_EQ(look.said(), CufileSaid::copied);
  look.after.nvfs -= 4;
  look.after.p2pdma += 4;  // which never shows there
  EXPECT_EQ(look.said(), CufileSaid::p2pdma_counted);
}

TEST(VendorEvidence, CallsByP2pdmaAreNotWhatNvidiaFsCounted) {
  Look look;  // nvidia-fs saw four calls of 4 MiB
  look.after.nvfs -= 4;
  look.after.p2pdma += 4;
  EXPECT_EQ(look.said(), CufileSaid::p2pdma_counted);
  look.after.p2pdma -= 1;
  look.after.nvfs += 1;
  EXPECT_EQ(look.said(), CufileSaid::library_counted);  // some of both
  look.after.p2pdma -= 1;
  look.after.posix += 1;
  EXPECT_EQ(look.said(), CufileSaid::copied);
}

TEST(VendorEvidence, WithP2pdmaOnAndNoCountOfTheLibrarysNvidiaFsProvesNothing) {
  Look look;
  look.after.p2pdma_on = true;
  EXPECT_EQ(look.said(), CufileSaid::kernel_counted);  // the library says that none went by it
  look.after.cufile_counts = false;
  EXPECT_EQ(look.said(), CufileSaid::nothing);
  look.after.p2pdma_on = false;
  EXPECT_EQ(look.said(), CufileSaid::kernel_counted);
}

TEST(VendorEvidence, OfAMixedCountOnlyTheOneRequestThatMadeItIsCopied) {
  Look look;
  look.after.nvfs -= 2;
  look.after.posix += 2;
  look.after.kernel_calls -= 2;
  look.after.kernel_mib -= 8;
  EXPECT_EQ(look.said(), CufileSaid::copied);
  EXPECT_EQ(look.said(8 * mib), CufileSaid::nothing);  // another request's may be the copied ones
  look.after.nvfs -= 2;
  look.after.posix += 2;
  EXPECT_EQ(look.said(8 * mib), CufileSaid::copied);  // all were
}

TEST(VendorEvidence, CopiesInManyPartsAreCopies) {
  Look look;
  look.after.kernel_counts = false;
  look.after.nvfs -= 4;
  look.after.posix += 11;  // the library cuts them
  EXPECT_EQ(look.said(), CufileSaid::copied);
  look.after.nvfs += 1;
  EXPECT_EQ(look.said(), CufileSaid::nothing);
}

TEST(VendorEvidence, SomebodyElsesDirectCallsDoNotCoverForCopies) {
  Look look;              // nvidia-fs saw four calls of 4 MiB
  look.after.posix += 4;  // and this process copied as many
  EXPECT_EQ(look.said(), CufileSaid::nothing);
}

TEST(VendorEvidence, CountersThatGoBackwardsProveNothing) {
  for (auto counter : {&CufileCounts::nvfs, &CufileCounts::p2pdma, &CufileCounts::posix}) {
    Look look;
    look.after.kernel_counts = false;
    look.after.*counter = look.before.*counter - 1;
    EXPECT_EQ(look.said(), CufileSaid::nothing);
  }
  Look look;  // so that the sum is right all the same
  look.after.kernel_counts = false;
  look.after.nvfs = look.before.nvfs - 20;
  look.after.posix = look.before.posix + 24;
  EXPECT_EQ(look.said(), CufileSaid::nothing);
  look = {};
  look.after.cufile_counts = false;
  look.before.kernel_calls = UINT64_MAX - 1;  // wraps to the right difference
  look.after.kernel_calls = 2;
  EXPECT_EQ(look.said(), CufileSaid::nothing);
}

TEST(VendorEvidence, WhereP2pdmaCannotBeSeenAKernelThatSawNothingProvesNothing) {
  Look look;
  look.after.kernel_calls = look.before.kernel_calls;
  look.after.kernel_mib = look.before.kernel_mib;
  look.before.cufile_counts = look.after.cufile_counts = false;
  EXPECT_EQ(look.said(), CufileSaid::nothing);
  look.after.knows_p2pdma = false;  // a version before it
  EXPECT_EQ(look.said(), CufileSaid::copied);
}

TEST(VendorEvidence, ALibraryThatCutsCountsMoreThanOurCalls) {
  Look look;
  look.after.nvfs += 8;  // three parts each, while nvidia-fs saw the calls that we made
  EXPECT_EQ(look.said(), CufileSaid::kernel_counted);
  look.after.kernel_calls += 8;
  EXPECT_EQ(look.said(), CufileSaid::kernel_counted);
  look.after.kernel_mib += 4;  // bytes that are not ours
  EXPECT_EQ(look.said(), CufileSaid::library_counted);
  look = {};
  look.after.nvfs -= 4;
  look.after.posix += 12;
  EXPECT_EQ(look.said(), CufileSaid::copied);
  look.after.posix = 1;  // somebody set it to zero
  look.after.kernel_counts = false;
  EXPECT_EQ(look.said(), CufileSaid::nothing);
}

TEST(VendorEvidence, WithoutCountersThereIsNone) {
  Look look;
  look.after.kernel_counts = look.after.cufile_counts = false;
  EXPECT_EQ(look.said(), CufileSaid::nothing);
  look = {};
  look.after.calls = look.before.calls;
  EXPECT_EQ(look.said(), CufileSaid::nothing);
}

}  // namespace
}  // namespace straightway::drive
