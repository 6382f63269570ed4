#include "drive/transfer.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <deque>
#include <functional>
#include <vector>

namespace straightway::drive {
namespace {

using transport::Completion;
using transport::Segment;

// Takes up to `room` segments; the test decides when and how each completes.
class Scripted final : public transport::Transport {
 public:
  const transport::Capabilities& capabilities() const override { return capabilities_; }
  Result<transport::Attachment> attach(const transport::FileRef& file) override {
    ++attached;
    return transport::Attachment{nullptr, static_cast<std::uint64_t>(file.fd),
                                 static_cast<std::uint64_t>(file.direct_fd)};
  }
  Result<transport::Attachment> attach(const MemoryRange&) override {
    return transport::Attachment{};
  }
  std::size_t submit(std::span<const Segment> segments) override {
    sizes_asked.push_back(segments.size());
    std::size_t count = 0;
    while (count < segments.size() && taken.size() < room) taken.push_back(segments[count++]);
    return count;
  }
  std::size_t reap(std::span<Completion>) override { return 0; }

  // Completes the oldest segment.
  void answer(Transfer& transfer, std::int64_t result) {
    const auto segment = taken.front();
    taken.pop_front();
    Completion completion;
    completion.cookie = segment.cookie;
    completion.result = result;
    completion.disk_bytes = 0;
    transfer.complete(completion, 7);
  }

  void take_at_most(std::uint64_t size_bytes) { capabilities_.largest_segment_bytes = size_bytes; }

  std::deque<Segment> taken;
  std::vector<std::size_t> sizes_asked;  // of each submit
  std::size_t room = 100;
  int attached = 0;

 private:
  transport::Capabilities capabilities_;
};

constexpr std::uint64_t piece = 4096;

Run run_of(Route route, FileRange range, bool direct_io = false) {
  Run run;
  run.route = route;
  run.reason = direct_io ? Reason::policy_direct : Reason::host_memory;
  run.file = range;
  run.segment_bytes = piece;
  run.align_bytes = direct_io ? 512 : 1;
  run.direct_io = direct_io;
  return run;
}

Leg leg_of(FileRange range, std::initializer_list<Run> runs) {
  Leg leg;
  leg.range = range;
  leg.address = 0x10000;
  for (const auto& run : runs) leg.runs[leg.run_count++] = run;
  return leg;
}

class TransferTest : public testing::Test {
 protected:
  Transfer make(std::vector<Leg> legs, Direction direction = Direction::read,
                bool may_fall_back = true, std::uint64_t deadline_ns = UINT64_MAX) {
    TransferSpec spec;
    spec.direction = direction;
    spec.files = {{{3, 4}, "a.bin"}};
    spec.legs = std::move(legs);
    spec.may_fall_back = may_fall_back;
    spec.deadline_ns = deadline_ns;
    Routes routes;
    routes.buffered.fill(&transport);
    routes.direct.fill(&transport);
    return {std::move(spec), routes, 5};
  }
  Receipt account(const Transfer& transfer) {
    Receipt receipt;
    transfer.account(receipt);
    return receipt;
  }
  Scripted transport;
};

TEST_F(TransferTest, CutsAtAbsoluteOffsetsAndCountsEverything) {
  auto transfer = make({leg_of({1000, 8000}, {run_of(Route::buffered, {1000, 8000})})});
  EXPECT_TRUE(transfer.step(3));
  ASSERT_EQ(transport.taken.size(), 3U);
  EXPECT_EQ(transport.taken[0].file_offset, 1000U);
  EXPECT_EQ(transport.taken[0].size_bytes, 3096U);
  EXPECT_EQ(transport.taken[1].file_offset, 4096U);
  EXPECT_EQ(transport.taken[1].address, 0x10000U + 3096);
  EXPECT_EQ(transport.taken[2].size_bytes, 808U);
  EXPECT_EQ(transport.taken[0].cookie >> 32, 5U);
  EXPECT_EQ(transport.attached, 1);
  EXPECT_FALSE(transfer.drained());
  for (const auto size : {3096, 4096, 808}) transport.answer(transfer, size);
  EXPECT_TRUE(transfer.drained());
  const auto receipt = account(transfer);
  EXPECT_EQ(receipt.moved_bytes, 8000U);
  EXPECT_EQ(receipt.wanted_bytes, 8000U);
  EXPECT_FALSE(receipt.ended_early);
  EXPECT_EQ(receipt.routes[index(Route::buffered)].bytes, 8000U);
  EXPECT_EQ(receipt.routes[index(Route::buffered)].segments, 3U);
  EXPECT_EQ(receipt.times.started_ns, 3U);
  EXPECT_EQ(receipt.times.first_byte_ns, 7U);
  EXPECT_TRUE(receipt.disk_measured);
}

// What a full transport gives back is work done for nothing, so it is asked once.
TEST_F(TransferTest, HandsOverMoreAtATimeUntilTheTransportIsFull) {
  constexpr std::uint64_t count = 2000;
  transport.room = 900;
  auto transfer = make({leg_of({0, count * piece}, {run_of(Route::buffered, {0, count * piece})})});
  EXPECT_TRUE(transfer.step(1));
  EXPECT_EQ(transport.sizes_asked, (std::vector<std::size_t>{4, 8, 16, 32, 64, 128, 256, 512}));
  EXPECT_EQ(transfer.in_flight(), 900U);
  transport.sizes_asked.clear();
  EXPECT_FALSE(transfer.step(2));
  EXPECT_EQ(transport.sizes_asked, std::vector<std::size_t>{4});
  for (std::uint64_t done = 0; done < count; ++done) {
    if (transport.taken.empty()) transfer.step(3);
    ASSERT_EQ(transport.taken.front().file_offset, done * piece);
    transport.answer(transfer, piece);
  }
  EXPECT_TRUE(transfer.drained());
  EXPECT_EQ(account(transfer).moved_bytes, count * piece);
}

TEST_F(TransferTest, E12_PeerMemoryIsGivenUpOnce) {
  TransferSpec spec;
  spec.files = {{{3, 4}, "a.bin"}};
  spec.legs = {leg_of({0, 4 * piece}, {run_of(Route::p2pdma, {0, 4 * piece}, true)})};
  Routes routes;  // those of peer memory: it has no ring
  routes.direct[index(Route::p2pdma)] = &transport;
  routes.buffered[index(Route::buffered)] = &transport;
  transport.room = 2;
  Transfer transfer(std::move(spec), routes, 5);
  transfer.step(1);
  transport.answer(transfer, -EREMOTEIO);
  transport.answer(transfer, piece);
  transport.room = 100;
  transfer.step(2);
  ASSERT_EQ(transport.taken.size(), 3U);
  for (const auto& segment : transport.taken) EXPECT_FALSE(segment.direct_io);
  for (int i = 0; i < 3; ++i) transport.answer(transfer, piece);
  EXPECT_TRUE(transfer.drained());
  const auto receipt = account(transfer);
  EXPECT_EQ(receipt.routes[index(Route::p2pdma)].bytes, piece);
  EXPECT_EQ(receipt.routes[index(Route::buffered)].bytes, 3 * piece);
  EXPECT_EQ(receipt.fallbacks, 1U);
  EXPECT_EQ(receipt.fallback_code, EREMOTEIO);
  EXPECT_EQ(receipt.refused[index(Route::p2pdma)], Reason::fell_back);
}

TEST_F(TransferTest, P2pdmaOfTheVendorsLibraryIsLeftForTheRing) {
  const auto routes_of = [&] {
    Routes routes;
    routes.direct[index(Route::p2pdma)] = &transport;
    routes.buffered[index(Route::staged)] = &transport;
    return routes;
  };
  const auto start = [&](bool may_fall_back) {
    TransferSpec spec;
    spec.files = {{{3, 4}, "a.bin"}};
    spec.legs = {leg_of({0, piece}, {run_of(Route::p2pdma, {0, piece}, true)})};
    spec.may_fall_back = may_fall_back;
    return Transfer(std::move(spec), routes_of(), 5);
  };
  for (const std::int64_t result : {std::int64_t{-5008}, std::int64_t{0}}) {
    auto transfer = start(true);
    transfer.step(1);
    transport.answer(transfer, result);  // refused, or "the file ends here", which is not believed
    transfer.step(2);
    ASSERT_EQ(transport.taken.size(), 1U);
    EXPECT_FALSE(transport.taken[0].direct_io);
    transport.answer(transfer, piece);
    EXPECT_TRUE(transfer.drained());
    EXPECT_EQ(account(transfer).routes[index(Route::staged)].bytes, piece);
  }
  auto refused = start(false);
  refused.step(1);
  transport.answer(refused, -EREMOTEIO);
  ASSERT_TRUE(refused.error());
  EXPECT_NE(refused.error()->why.find("vendor's library"), std::string::npos);
}

TEST_F(TransferTest, UnderDirectARefusalByThePeerIsTheError) {
  auto transfer =
      make({leg_of({0, piece}, {run_of(Route::p2pdma, {0, piece}, true)})}, Direction::read, false);
  transfer.step(1);
  transport.answer(transfer, -EREMOTEIO);
  ASSERT_TRUE(transfer.drained());
  EXPECT_EQ(transfer.error()->kind, ErrorKind::route_refused);
  EXPECT_EQ(transfer.error()->code, EREMOTEIO);
}

TEST_F(TransferTest, A2_ShortAndInterruptedSegmentsGoOn) {
  auto transfer = make({leg_of({0, 100}, {run_of(Route::buffered, {0, 100})})});
  transfer.step(1);
  transport.answer(transfer, 30);
  transfer.step(1);
  ASSERT_EQ(transport.taken.size(), 1U);
  EXPECT_EQ(transport.taken[0].file_offset, 30U);
  EXPECT_EQ(transport.taken[0].address, 0x10000U + 30);
  EXPECT_EQ(transport.taken[0].size_bytes, 70U);
  transport.answer(transfer, -EINTR);
  transfer.step(1);
  transport.answer(transfer, 70);
  EXPECT_TRUE(transfer.drained());
  const auto receipt = account(transfer);
  EXPECT_EQ(receipt.moved_bytes, 100U);
  EXPECT_EQ(receipt.retries, 2U);
  EXPECT_EQ(receipt.routes[index(Route::buffered)].segments, 1U);
}

TEST_F(TransferTest, ALostPinSendsTheBytesThroughTheRingInItsPieces) {
  straightway::Run pinned = run_of(Route::pinned_cache, {1000, 9000});
  pinned.segment_bytes = 1 << 20;
  pinned.reason = Reason::pinned;
  auto transfer = make({leg_of({1000, 9000}, {pinned})}, Direction::read, false);
  transfer.step(1);
  ASSERT_EQ(transport.taken.size(), 1U);
  transport.take_at_most(piece);
  transport.answer(transfer, -ESTALE);
  EXPECT_FALSE(transfer.drained());
  transfer.step(1);
  ASSERT_EQ(transport.taken.size(), 3U);  // 1000, 4096, 8192
  EXPECT_EQ(transport.taken[0].size_bytes, 3096U);
  EXPECT_EQ(transport.taken[1].file_offset, 4096U);
  EXPECT_EQ(transport.taken[2].size_bytes, 1808U);
  EXPECT_EQ(transport.taken[2].address, 0x10000U + 7192);
  for (const auto size : {3096, 4096, 1808}) transport.answer(transfer, size);
  EXPECT_TRUE(transfer.drained());
  const auto receipt = account(transfer);
  EXPECT_EQ(receipt.moved_bytes, 9000U);
  EXPECT_EQ(receipt.routes[index(Route::pinned_cache)].bytes, 0U);
  EXPECT_EQ(receipt.routes[index(Route::staged)].bytes, 9000U);
  EXPECT_EQ(receipt.routes[index(Route::staged)].reason, Reason::pin_lost);
  EXPECT_EQ(receipt.refused[index(Route::pinned_cache)], Reason::pin_lost);
  EXPECT_EQ(receipt.fallbacks, 1U);
  EXPECT_EQ(receipt.fallback_code, ESTALE);
}

TEST_F(TransferTest, EndOfFileStopsWhatLiesBehindIt) {
  transport.room = 2;
  auto transfer = make({leg_of({0, 5 * piece}, {run_of(Route::buffered, {0, 5 * piece})})});
  transfer.step(1);
  transport.answer(transfer, 100);
  transport.answer(transfer, 0);
  EXPECT_FALSE(transfer.drained());
  transfer.step(1);
  ASSERT_EQ(transport.taken.size(), 1U);  // the rest of the first, and nothing behind the end
  transport.answer(transfer, 0);
  EXPECT_TRUE(transfer.drained());
  const auto receipt = account(transfer);
  EXPECT_EQ(receipt.moved_bytes, 100U);
  EXPECT_TRUE(receipt.ended_early);
  EXPECT_EQ(receipt.end_of_file, 100U);
}

TEST_F(TransferTest, BytesBehindALateEndDoNotCount) {
  auto transfer = make({leg_of({0, 2 * piece}, {run_of(Route::buffered, {0, 2 * piece})})});
  transfer.step(1);
  std::swap(transport.taken[0], transport.taken[1]);
  transport.answer(transfer, piece);  // the second: read before the file was cut
  transport.answer(transfer, 0);
  EXPECT_TRUE(transfer.drained());
  EXPECT_EQ(account(transfer).moved_bytes, 0U);
  EXPECT_EQ(account(transfer).end_of_file, 0U);
}

TEST_F(TransferTest, D4_AFailureInTheMiddleFailsTheWhole) {
  transport.room = 3;
  auto transfer = make({leg_of({0, 8 * piece}, {run_of(Route::buffered, {0, 8 * piece})})});
  transfer.step(1);
  transport.answer(transfer, piece);
  transport.answer(transfer, -EIO);
  EXPECT_FALSE(transfer.drained());  // C7: the third is still in flight
  EXPECT_FALSE(transfer.step(1));    // and nothing new is submitted
  transport.answer(transfer, piece);
  EXPECT_TRUE(transfer.drained());
  ASSERT_TRUE(transfer.error());
  EXPECT_EQ(transfer.error()->code, EIO);
  EXPECT_EQ(transfer.error()->offset, piece);
  EXPECT_EQ(transfer.error()->path, "a.bin");
}

TEST_F(TransferTest, DirectFallsBackOnListedErrorsAndKeepsTheReason) {
  auto transfer =
      make({leg_of({0, 2 * piece}, {run_of(Route::direct_host, {0, 2 * piece}, true)})});
  transfer.step(1);
  EXPECT_EQ(transport.taken[0].file, 4U);
  transport.answer(transfer, -EINVAL);
  transport.answer(transfer, piece);
  transfer.step(1);
  ASSERT_EQ(transport.taken.size(), 1U);
  EXPECT_EQ(transport.taken[0].file, 3U);
  EXPECT_FALSE(transport.taken[0].direct_io);
  transport.answer(transfer, piece);
  const auto receipt = account(transfer);
  EXPECT_EQ(receipt.moved_bytes, 2 * piece);
  EXPECT_EQ(receipt.fallbacks, 1U);
  EXPECT_EQ(receipt.fallback_code, EINVAL);
  EXPECT_EQ(receipt.routes[index(Route::buffered)].bytes, piece);
  EXPECT_EQ(receipt.routes[index(Route::buffered)].reason, Reason::fell_back);
  EXPECT_EQ(receipt.routes[index(Route::direct_host)].bytes, piece);
}

TEST_F(TransferTest, UnderPolicyDirectARefusalIsAnError) {
  auto transfer = make({leg_of({0, piece}, {run_of(Route::direct_host, {0, piece}, true)})},
                       Direction::read, false);
  transfer.step(1);
  transport.answer(transfer, -EINVAL);
  EXPECT_TRUE(transfer.drained());
  ASSERT_TRUE(transfer.error());
  EXPECT_EQ(transfer.error()->kind, ErrorKind::route_refused);
}

TEST_F(TransferTest, ADirectReadThatStopsInsideABlockEndsBuffered) {
  auto transfer = make({leg_of({0, piece}, {run_of(Route::direct_host, {0, piece}, true)})},
                       Direction::read, false);
  transfer.step(1);
  transport.answer(transfer, 700);
  transfer.step(1);
  EXPECT_FALSE(transport.taken[0].direct_io);
  transport.answer(transfer, 0);
  EXPECT_TRUE(transfer.drained());
  EXPECT_FALSE(transfer.error());
  EXPECT_EQ(account(transfer).moved_bytes, 700U);
  EXPECT_EQ(account(transfer).fallbacks, 0U);
}

TEST_F(TransferTest, CancelDrainsWhatIsInFlight) {
  transport.room = 1;
  auto transfer = make({leg_of({0, 3 * piece}, {run_of(Route::buffered, {0, 3 * piece})})});
  transfer.step(1);
  transfer.stop({ErrorKind::cancelled, ErrorOrigin::straightway, 0, "read", "", {}, "", ""});
  EXPECT_FALSE(transfer.drained());
  transport.answer(transfer, 10);  // its rest is not submitted any more
  EXPECT_TRUE(transfer.drained());
  EXPECT_FALSE(transfer.step(1));
  EXPECT_EQ(transfer.error()->kind, ErrorKind::cancelled);
}

TEST_F(TransferTest, TheDeadlineStopsIt) {
  transport.room = 1;
  auto transfer = make({leg_of({0, 3 * piece}, {run_of(Route::buffered, {0, 3 * piece})})},
                       Direction::read, true, 100);
  transfer.step(99);
  EXPECT_FALSE(transfer.error());
  transport.answer(transfer, piece);
  transfer.step(100);
  ASSERT_TRUE(transfer.error());
  EXPECT_EQ(transfer.error()->kind, ErrorKind::deadline_exceeded);
  EXPECT_TRUE(transport.taken.empty());
  EXPECT_TRUE(transfer.drained());
}

TEST_F(TransferTest, ManyRangesGetOneTable) {
  auto transfer = make({leg_of({0, 10}, {run_of(Route::buffered, {0, 10})}), leg_of({50, 0}, {}),
                        leg_of({100, 20}, {run_of(Route::buffered, {100, 20})})});
  transfer.step(1);
  transport.answer(transfer, 10);
  transport.answer(transfer, 5);
  transfer.step(1);
  transport.answer(transfer, 0);
  EXPECT_TRUE(transfer.drained());
  const auto receipt = account(transfer);
  ASSERT_TRUE(receipt.ranges);
  EXPECT_EQ(receipt.ranges->offset, (std::vector<std::uint64_t>{0, 50, 100}));
  EXPECT_EQ(receipt.ranges->wanted_bytes, (std::vector<std::uint64_t>{10, 0, 20}));
  EXPECT_EQ(receipt.ranges->moved_bytes, (std::vector<std::uint64_t>{10, 0, 5}));
  EXPECT_EQ(receipt.moved_bytes, 15U);
  EXPECT_EQ(receipt.end_of_file, 105U);
}

TEST_F(TransferTest, ARouteWithoutATransportIsNeverServedByAnother) {
  TransferSpec spec;
  spec.files = {{{3, 4}, "a.bin"}};
  spec.legs = {leg_of({0, piece}, {run_of(Route::nvfs, {0, piece})})};
  Routes routes;
  routes.buffered[index(Route::staged)] = &transport;
  Transfer transfer(std::move(spec), routes, 0);
  transfer.step(1);
  EXPECT_TRUE(transfer.drained());
  ASSERT_TRUE(transfer.error());
  EXPECT_EQ(transfer.error()->kind, ErrorKind::unsupported);
  EXPECT_TRUE(transport.taken.empty());
}

TEST_F(TransferTest, EnvelopesAreWholeBlocks) {
  auto transfer = make({leg_of({100, 1000}, {run_of(Route::staged, {100, 1000}, true)})});
  transfer.step(1);
  EXPECT_EQ(transport.taken[0].envelope_offset, 0U);
  EXPECT_EQ(transport.taken[0].envelope_bytes, 1536U);
  EXPECT_EQ(transport.taken[0].file_offset, 100U);
}

// A run whose cold MiB have a way of their own, over a page cache that a test sets.
class ColdTest : public TransferTest {
 protected:
  static constexpr std::uint64_t mib = std::uint64_t{1} << 20;

  Transfer read(std::uint64_t count, ColdWay cold, bool may_fall_back = true) {
    straightway::Run run = run_of(Route::buffered, {0, count * mib});
    run.segment_bytes = mib;
    run.cold = cold;
    run.cold_reason = cold == ColdWay::dropped  ? Reason::cold_dropped
                      : cold == ColdWay::direct ? Reason::cold_direct
                                                : Reason::cold_kept;
    run.cold_align_bytes = 4096;
    TransferSpec spec;
    spec.files = {{{3, 4}, "a.bin"}};
    spec.legs = {leg_of({0, count * mib}, {run})};
    spec.may_fall_back = may_fall_back;
    spec.vendor_route = Route::p2pdma;
    spec.look_up = [this](int fd, const FileRange& range) {
      EXPECT_EQ(fd, 3);
      if (unknown) return plan::Look{};
      std::uint64_t resident = 0;
      for (auto at = range.offset; at < range.offset + range.size_bytes; at += mib) {
        if (hot(at / mib)) resident += mib;
      }
      return plan::Look{true, resident};
    };
    spec.drop_pages = [this](int fd, const FileRange& range) {
      EXPECT_EQ(fd, 3);
      dropped.push_back(range);
    };
    Routes routes;
    routes.buffered.fill(&transport);
    routes.direct.fill(&transport);
    return {std::move(spec), routes, 5};
  }
  std::vector<FileRange> dropped;
  std::function<bool(std::uint64_t mib)> hot = [](std::uint64_t i) { return i % 2 == 0; };
  bool unknown = false;
};

TEST_F(ColdTest, ColdMibGoToTheGpuByTheWayOfTheVendorsLibrary) {
  auto transfer = read(4, ColdWay::nvfs);
  transfer.step(1);
  ASSERT_EQ(transport.taken.size(), 4U);
  for (int i = 0; i < 4; ++i) transport.answer(transfer, mib);
  const auto receipt = account(transfer);
  EXPECT_EQ(receipt.routes[index(Route::p2pdma)].bytes, 2 * mib);
  EXPECT_EQ(receipt.routes[index(Route::nvfs)].bytes, 0U);
}

TEST_F(ColdTest, HotFromTheCacheColdDirectEachMibOneWay) {
  auto transfer = read(4, ColdWay::direct);
  transfer.step(1);
  ASSERT_EQ(transport.taken.size(), 4U);
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(transport.taken[i].direct_io, i % 2 == 1) << i;
    EXPECT_EQ(transport.taken[i].file, i % 2 == 1 ? 4U : 3U) << i;
  }
  for (int i = 0; i < 4; ++i) transport.answer(transfer, mib);
  EXPECT_TRUE(transfer.drained());
  const auto receipt = account(transfer);
  EXPECT_EQ(receipt.routes[index(Route::buffered)].bytes, 2 * mib);
  EXPECT_EQ(receipt.routes[index(Route::direct_host)].bytes, 2 * mib);
  EXPECT_EQ(receipt.routes[index(Route::direct_host)].reason, Reason::cold_direct);
  EXPECT_EQ(receipt.found, (CacheFound{2 * mib, 2 * mib, 0}));
  EXPECT_EQ(receipt.cold_reason, Reason::cold_direct);
}

TEST_F(ColdTest, AFewFillThePageCacheAtOnceAndHotOnesAreNotCounted) {
  transport.room = 100;
  hot = [](std::uint64_t i) { return i < 8; };
  auto transfer = read(20, ColdWay::kept);
  transfer.step(1);
  EXPECT_EQ(transport.taken.size(), 8U + 5U);
  for (int i = 0; i < 8; ++i) transport.answer(transfer, mib);
  transfer.step(2);
  EXPECT_EQ(transport.taken.size(), 5U);
  transport.answer(transfer, -EINTR);  // is taken back before anything new
  transfer.step(3);
  ASSERT_EQ(transport.taken.size(), 5U);
  EXPECT_EQ(transport.taken[4].file_offset, 8 * mib);
  std::size_t most = 0;
  std::uint64_t now_ns = 3;
  while (!transport.taken.empty()) {
    now_ns += 3'000'000;  // a slow disk
    transport.answer(transfer, mib);
    transfer.step(now_ns);
    most = std::max(most, transport.taken.size());
  }
  EXPECT_EQ(most, 5U);
  EXPECT_TRUE(transfer.drained());
  EXPECT_EQ(account(transfer).moved_bytes, 20 * mib);
}

TEST_F(ColdTest, DirectPiecesAreAsManyAsTheTransportTakes) {
  transport.room = 100;
  hot = [](std::uint64_t) { return false; };
  auto transfer = read(20, ColdWay::direct);
  transfer.step(1);
  EXPECT_EQ(transport.taken.size(), 20U);
  for (int i = 0; i < 20; ++i) transport.answer(transfer, mib);
  EXPECT_TRUE(transfer.drained());
}

TEST_F(ColdTest, DontcacheThatIsRefusedBecomesReadAndDropAndIsNotTriedAgain) {
  transport.room = 1;
  hot = [](std::uint64_t) { return false; };
  auto transfer = read(3, ColdWay::dropped, false);  // no matter of policy
  transfer.step(1);
  EXPECT_TRUE(transport.taken[0].dontcache);
  transport.answer(transfer, -EOPNOTSUPP);
  for (int i = 0; i < 3; ++i) {
    transfer.step(1);
    ASSERT_EQ(transport.taken.size(), 1U);
    EXPECT_FALSE(transport.taken[0].dontcache);
    EXPECT_TRUE(transport.taken[0].trim);
    transport.answer(transfer, mib);
  }
  EXPECT_TRUE(transfer.drained());
  EXPECT_FALSE(transfer.error());
  const auto receipt = account(transfer);
  EXPECT_EQ(receipt.moved_bytes, 3 * mib);
  EXPECT_EQ(receipt.fallbacks, 0U);
  EXPECT_EQ(receipt.routes[index(Route::buffered)].reason, Reason::cold_trimmed);
}

TEST_F(ColdTest, ColdRangesAreDroppedOnceNothingIsInFlight) {
  hot = [](std::uint64_t i) { return i == 2; };
  auto transfer = read(5, ColdWay::dropped);
  transfer.step(1);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(dropped.empty());
    transport.answer(transfer, mib);
  }
  EXPECT_EQ(dropped, (std::vector<FileRange>{{0, 2 * mib}, {3 * mib, 2 * mib}}));
}

TEST_F(ColdTest, AColdPieceThatCannotGoDirectFallsBackAlone) {
  auto transfer = read(2, ColdWay::direct);
  transfer.step(1);
  transport.answer(transfer, mib);
  transport.answer(transfer, -EINVAL);
  transfer.step(1);
  ASSERT_EQ(transport.taken.size(), 1U);
  EXPECT_FALSE(transport.taken[0].direct_io);
  transport.answer(transfer, mib);
  EXPECT_EQ(account(transfer).fallbacks, 1U);
  EXPECT_EQ(account(transfer).routes[index(Route::buffered)].bytes, 2 * mib);
}

// The look is a look: what changes before the read changes the way, never the bytes asked for.
TEST_F(ColdTest, WhatTurnsHotOrColdInBetweenIsStillReadOnce) {
  transport.room = 1;
  auto transfer = read(4, ColdWay::dropped);
  std::uint64_t next = 0;
  while (!transfer.drained()) {
    transfer.step(1);
    hot = [next](std::uint64_t i) { return (i + next) % 3 == 0; };
    ASSERT_EQ(transport.taken.size(), 1U);
    EXPECT_EQ(transport.taken[0].file_offset, next * mib);
    EXPECT_EQ(transport.taken[0].size_bytes, mib);
    ++next;
    transport.answer(transfer, mib);
  }
  EXPECT_EQ(next, 4U);
  EXPECT_EQ(account(transfer).found.looked(), true);
}

TEST_F(ColdTest, UnknownIsReadPlainly) {
  unknown = true;
  auto transfer = read(3, ColdWay::kept);
  transfer.step(1);
  for (const auto& segment : transport.taken) {
    EXPECT_FALSE(segment.dontcache || segment.trim || segment.direct_io);
  }
  for (int i = 0; i < 3; ++i) transport.answer(transfer, mib);
  EXPECT_EQ(account(transfer).found, (CacheFound{0, 0, 3 * mib}));
}

}  // namespace
}  // namespace straightway::drive
