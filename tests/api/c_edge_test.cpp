// The edge of the C ABI: frozen layout, sized structs, errors and exceptions as a status.

#include "api/c_edge.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>

#include "straightway/straightway.h"
#include "tests/api/c_api_fixture.hpp"

extern "C" int header_is_c_calls(void);

// Nothing but a status leaves, whatever is thrown inside.
TEST(CApiEdge, ExceptionsBecomeAStatus) {
  using straightway::c_edge::guarded;
  auto error = fresh<sw_error>();
  const auto throwing = [](auto exception) {
    return [exception]() -> straightway::Result<void> { throw exception; };
  };
  EXPECT_EQ(guarded(&error, throwing(std::bad_alloc())), SW_OUT_OF_MEMORY);
  EXPECT_STRNE(error.message, "");
  EXPECT_EQ(guarded(&error, throwing(std::runtime_error("odd"))), SW_UNSUPPORTED);
  EXPECT_STREQ(error.message, "odd");
  EXPECT_EQ(guarded(&error, throwing(7)), SW_UNSUPPORTED);
  straightway::Error closed;
  closed.kind = straightway::ErrorKind::closed;
  EXPECT_EQ(guarded(nullptr, throwing(straightway::ErrorException(closed))), SW_CLOSED);
}

TEST(CApiEdge, LongMessagesAreCutAndSaySo) {
  auto error = fresh<sw_error>();
  straightway::Error cause;
  cause.attempted = "open";
  cause.path = std::string(3000, 'p');
  cause.offset = 17;
  cause.code = 36;
  cause.origin = straightway::ErrorOrigin::system;
  EXPECT_EQ(straightway::c_edge::report(&error, cause), SW_IO);
  EXPECT_EQ(std::string(error.message).size(), sizeof error.message - 1);
  EXPECT_TRUE(std::string(error.message).ends_with("..."));
  EXPECT_EQ(error.offset, 17U);
  EXPECT_EQ(error.has_offset, 1);
  EXPECT_EQ(error.code, 36);
  EXPECT_EQ(error.origin, SW_ORIGIN_SYSTEM);
  EXPECT_EQ(error.struct_size, sizeof error);
}

// A caller of a newer header: the longer struct is accepted while the unknown part is zero.
TEST(CApiEdge, NewerStructsAreAcceptedWhileTheirNewPartIsZero) {
  struct Newer {
    sw_call_options known;
    std::uint64_t added;
  } newer{};
  SW_INIT(&newer);
  newer.known.offset = 5;
  auto taken = straightway::c_edge::take(&newer.known, "options");
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->offset, 5U);
  newer.added = 1;
  auto refused = straightway::c_edge::take(&newer.known, "options");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, straightway::ErrorKind::unsupported);

  struct NewerShare {
    sw_route_share known;
    std::uint64_t added;
  } share{};
  SW_INIT(&share);
  share.added = 9;
  sw_route_share value{};
  value.bytes = 3;
  ASSERT_TRUE(straightway::c_edge::give(&share.known, value, "share").ok());
  EXPECT_EQ(share.known.bytes, 3U);
  EXPECT_EQ(share.known.struct_size, sizeof share);
  EXPECT_EQ(share.added, 0U);
}

TEST(CApiLayout, OffsetsAreFrozen) {
  EXPECT_EQ(offsetof(sw_error, status), 4U);
  EXPECT_EQ(offsetof(sw_error, origin), 8U);
  EXPECT_EQ(offsetof(sw_error, code), 12U);
  EXPECT_EQ(offsetof(sw_error, offset), 16U);
  EXPECT_EQ(offsetof(sw_error, has_offset), 24U);
  EXPECT_EQ(offsetof(sw_error, message), 32U);
  EXPECT_EQ(offsetof(sw_context_options, flags), 4U);
  EXPECT_EQ(offsetof(sw_context_options, policy), 8U);
  EXPECT_EQ(offsetof(sw_context_options, threads), 24U);
  EXPECT_EQ(offsetof(sw_context_options, pinned_bytes), 32U);
  EXPECT_EQ(offsetof(sw_context_options, on_warning), 40U);
  EXPECT_EQ(offsetof(sw_open_options, door), 12U);
  EXPECT_EQ(offsetof(sw_call_options, flags), 4U);
  EXPECT_EQ(offsetof(sw_call_options, offset), 8U);
  EXPECT_EQ(offsetof(sw_call_options, size_bytes), 16U);
  EXPECT_EQ(offsetof(sw_call_options, policy), 24U);
  EXPECT_EQ(offsetof(sw_call_options, sync), 36U);
  EXPECT_EQ(offsetof(sw_call_options, stream), 40U);
  EXPECT_EQ(offsetof(sw_call_options, deadline_ns), 48U);
  EXPECT_EQ(offsetof(sw_call_options, on_progress), 56U);
  EXPECT_EQ(offsetof(sw_call_options, release), 72U);
  EXPECT_EQ(offsetof(sw_receipt_summary, end_of_file), 24U);
  EXPECT_EQ(offsetof(sw_receipt_summary, moved_bytes), 48U);
  EXPECT_EQ(offsetof(sw_receipt_summary, disk_bytes), 72U);
  EXPECT_EQ(offsetof(sw_receipt_summary, queued_ns), 96U);
  EXPECT_EQ(offsetof(sw_receipt_summary, range_count), 160U);
  EXPECT_EQ(offsetof(sw_receipt_summary, found_hot_bytes), 168U);
  EXPECT_EQ(offsetof(sw_route_share, bytes), 8U);
  EXPECT_EQ(offsetof(sw_route_share, refused), 28U);
  EXPECT_EQ(offsetof(sw_plan_run, offset), 16U);
  EXPECT_EQ(offsetof(sw_plan_run, segments), 40U);
}

TEST(CApiLayout, FirstVersionsAreTheFrozenSizes) {
  using straightway::c_edge::first_bytes;
  EXPECT_LE(first_bytes<sw_error>, sizeof(sw_error));
  EXPECT_LE(first_bytes<sw_context_options>, sizeof(sw_context_options));
  EXPECT_LE(first_bytes<sw_open_options>, sizeof(sw_open_options));
  EXPECT_LE(first_bytes<sw_call_options>, sizeof(sw_call_options));
  EXPECT_LE(first_bytes<sw_receipt_summary>, sizeof(sw_receipt_summary));
  EXPECT_LE(first_bytes<sw_route_share>, sizeof(sw_route_share));
  EXPECT_LE(first_bytes<sw_plan_run>, sizeof(sw_plan_run));
}

TEST(CApiLayout, HeaderWorksFromC) { EXPECT_EQ(header_is_c_calls(), 0); }
