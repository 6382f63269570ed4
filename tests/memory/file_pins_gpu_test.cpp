// The pins of one file, below the front door: what is shared, what is let go when, and the witness
// for a writer who was at work before.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "memory/file_pins.hpp"
#include "os/descriptor.hpp"
#include "tests/memory/gpu_fixture.hpp"
#include "tests/temp_file.hpp"

namespace straightway::memory {
namespace {

using testing::ElementsAre;

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t file_bytes = 16 * page + 5;

class FilePinsTest : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    file = os::Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    before = fake_.pinned_bytes();
    make_pins({});
  }
  void make_pins(FilePins::Pieces pieces) {
    auto made = FilePins::make(
        cuda_.space, budget, file.get(), [this](const std::string&) { ++losses; }, pieces);
    ASSERT_TRUE(made) << made.error().message();
    pins = std::move(*made);
  }
  std::uint64_t pin(std::vector<FileRange> ranges) {
    const auto added = pins->add(ranges, -1);
    EXPECT_TRUE(added) << added.error().message();
    return added ? added->pin : 0;
  }
  std::uint64_t held() { return fake_.pinned_bytes() - before; }
  void append() {
    const os::Descriptor writer(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    ASSERT_EQ(::write(writer.get(), "x", 1), 1);
  }

  tests::TempFolder folder;
  const std::string path = folder.write("a", tests::pattern(file_bytes));
  os::Descriptor file;
  std::shared_ptr<PinBudget> budget = std::make_shared<PinBudget>(100 * page);
  std::shared_ptr<FilePins> pins;
  std::uint64_t before = 0;
  std::atomic<int> losses{0};
};

TEST_F(FilePinsTest, WholePagesAreHeldAndSharedRangesOnce) {
  const auto first = pin({{page + 1, 1}, {3 * page, page}});
  EXPECT_THAT(pins->extents(), ElementsAre(FileRange{page, page}, FileRange{3 * page, page}));
  const auto second = pin({{page, 4 * page}});
  EXPECT_THAT(pins->extents(), ElementsAre(FileRange{page, 4 * page}));
  EXPECT_EQ(held(), 4 * page);
  EXPECT_EQ(budget->used_bytes(), 4 * page);
  pins->remove(first, true);
  EXPECT_EQ(held(), 4 * page);
  EXPECT_FALSE(pins->has(first));
  EXPECT_TRUE(pins->has(second));
  pins->remove(second, true);
  EXPECT_EQ(held(), 0U);
  EXPECT_EQ(budget->used_bytes(), 0U);
  EXPECT_FALSE(pins->lost());
}

// By helping threads and without: nobody sees the difference.
TEST_F(FilePinsTest, ALongStretchIsHeldInPieces) {
  for (const std::uint32_t helpers : {0, 3}) {
    make_pins({.size_bytes = 4 * page, .helpers = helpers});
    const auto all = pin({{0, file_bytes}});
    EXPECT_THAT(pins->extents(), ElementsAre(FileRange{0, file_bytes}));
    EXPECT_EQ(held(), 17 * page);
    EXPECT_EQ(budget->used_bytes(), 17 * page);
    for (std::uint64_t at = 0; at < file_bytes; at += page) {
      const auto use = pins->use(at);
      ASSERT_TRUE(use) << at;
      const auto piece = at / (4 * page) * 4 * page;
      EXPECT_EQ(use.range().range(), (FileRange{piece, std::min(4 * page, 17 * page - piece)}));
      EXPECT_TRUE(use.ready({at, page}));
    }
    EXPECT_FALSE(pins->use(17 * page));
    const auto part = pin({{3 * page, 2 * page}});  // shares two of them
    pins->remove(all, true);
    EXPECT_THAT(pins->extents(), ElementsAre(FileRange{0, 8 * page}));
    EXPECT_FALSE(pins->use(8 * page));
    pins->remove(part, true);
    EXPECT_EQ(held(), 0U);
    EXPECT_EQ(budget->used_bytes(), 0U);
  }
}

// The simulated GPU's, and what of a piece was in the page table when its registration began.
class WatchedSpace final : public Space {
 public:
  explicit WatchedSpace(std::shared_ptr<Space> space) : space_(std::move(space)) {}
  SpaceKind kind() const override { return space_->kind(); }
  Result<std::optional<MemoryRange>> find(const void* address, std::uint64_t size) const override {
    return space_->find(address, size);
  }
  Result<std::unique_ptr<Pinned>> pin(std::int32_t device, std::size_t size,
                                      std::uint32_t threads) override {
    return space_->pin(device, size, threads);
  }
  Result<std::unique_ptr<Lane>> open_lane(std::int32_t device) override {
    return space_->open_lane(device);
  }
  Result<std::unique_ptr<Desk>> open_desk(std::int32_t device, std::size_t size) override {
    return space_->open_desk(device, size);
  }
  Result<void> can_hold_pages(std::int32_t device) override {
    return space_->can_hold_pages(device);
  }
  Result<std::unique_ptr<HeldPages>> hold_pages(std::int32_t device, void* pages,
                                                std::size_t size) override {
    filled.push_back(presence_.all_present(static_cast<std::byte*>(pages), size));
    if (filled.size() == fail_at) return Error{.kind = ErrorKind::out_of_memory};
    return space_->hold_pages(device, pages, size);
  }
  Result<void> in_context(std::int32_t device, const std::function<void()>& work) override {
    return space_->in_context(device, work);
  }
  Result<std::unique_ptr<Mark>> mark_stream(std::int32_t device,
                                            std::optional<void*> stream) override {
    return space_->mark_stream(device, stream);
  }

  std::vector<bool> filled;
  std::size_t fail_at = SIZE_MAX;

 private:
  const std::shared_ptr<Space> space_;
  const os::PagePresence presence_ = std::move(*os::PagePresence::open());
};

class FilledPins : public FilePinsTest {
 protected:
  static constexpr std::uint64_t piece = 1000 * page;
  static constexpr std::uint64_t pieces = 8;
  void SetUp() override {
    Gpu::SetUp();
    ASSERT_EQ(::truncate(path.c_str(), pieces * piece), 0);
    file = os::Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    before = fake_.pinned_bytes();
    budget = std::make_shared<PinBudget>(pieces * piece);
    space = std::make_shared<WatchedSpace>(cuda_.space);
    pins = std::move(
               FilePins::make(space, budget, file.get(), {}, {.size_bytes = piece, .helpers = 2}))
               .value();
  }
  std::shared_ptr<WatchedSpace> space;
};

// A page that is entered beside one that is held could hide a change of it.
TEST_F(FilledPins, APieceIsRegisteredOnceNobodyEntersItsPagesAnyMore) {
  pin({{0, pieces * piece}});
  EXPECT_THAT(space->filled, testing::AllOf(testing::SizeIs(pieces), testing::Each(true)));
  EXPECT_EQ(held(), pieces * piece);
}

TEST_F(FilledPins, OfAStretchThatFailsNothingStays) {
  space->fail_at = 3;
  EXPECT_FALSE(pins->add({{0, pieces * piece}}, -1));
  EXPECT_EQ(space->filled.size(), 3U);
  EXPECT_EQ(held(), 0U);
  EXPECT_EQ(budget->used_bytes(), 0U);
}

// Sparse files are as long as somebody likes, and mappings are few.
TEST_F(FilledPins, WhatIsBeyondTheBudgetIsNotMapped) {
  constexpr std::uint64_t huge = std::uint64_t{1} << 43;
  ASSERT_EQ(::truncate(path.c_str(), huge), 0);
  const auto added = pins->add({{0, huge}}, -1);
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().message(), testing::HasSubstr("pin_bytes is"));
  EXPECT_EQ(budget->used_bytes(), 0U);
  pin({{0, pieces * piece}});
}

TEST_F(FilePinsTest, ALostStretchOfPiecesIsLetGoAsAWhole) {
  make_pins({.size_bytes = page, .helpers = 2});
  pin({{0, file_bytes}});
  const auto use = pins->use(5 * page);
  append();
  EXPECT_FALSE(use.intact({5 * page, page}));
  EXPECT_EQ(losses, 1);
  EXPECT_THAT(pins->extents(), ElementsAre());
  EXPECT_EQ(held(), page);  // what a copy uses
  pin({{0, 6 * page}});
  EXPECT_TRUE(pins->use(5 * page).ready({5 * page, page}));
}

TEST_F(FilePinsTest, TheLastPageMayBePartial) {
  const auto added = pins->add({{15 * page, 100 * page}}, -1);
  ASSERT_TRUE(added);
  EXPECT_EQ(added->size_bytes, page + 5);
  EXPECT_EQ(held(), 2 * page);
  EXPECT_THAT(pins->extents(), ElementsAre(FileRange{15 * page, page + 5}));
  const auto use = pins->use(file_bytes - 1);
  ASSERT_TRUE(use);
  EXPECT_TRUE(use.ready({16 * page, 5}));
  EXPECT_FALSE(pins->use(14 * page));
}

TEST_F(FilePinsTest, ALossEndsAllPinsOnceAndAddingAgainWorks) {
  pin({{0, page}});
  const auto other = pin({{2 * page, page}});
  {
    const auto use = pins->use(0);
    ASSERT_TRUE(use.ready({0, page}));
    append();
    EXPECT_FALSE(use.intact({0, page}));
    EXPECT_FALSE(use.ready({0, page}));
    EXPECT_EQ(losses, 1);
    EXPECT_FALSE(pins->has(other));
    EXPECT_FALSE(pins->use(2 * page));
    EXPECT_TRUE(pins->lost());
    EXPECT_THAT(pins->extents(), ElementsAre());  // lets go of what no copy uses
    EXPECT_EQ(held(), page);
  }
  const auto again = pin({{0, page}});
  EXPECT_TRUE(pins->has(again));
  EXPECT_FALSE(pins->lost());
  EXPECT_EQ(held(), page);
  EXPECT_EQ(losses, 1);
}

TEST_F(FilePinsTest, AddingFindsThatWhatIsHeldIsOutdated) {
  const auto first = pin({{0, page}});
  append();
  const auto second = pin({{0, 2 * page}});
  EXPECT_FALSE(pins->has(first));
  EXPECT_TRUE(pins->has(second));
  EXPECT_EQ(held(), 2 * page);
  EXPECT_TRUE(pins->use(0).ready({0, page}));
  EXPECT_FALSE(pins->lost());
}

TEST_F(FilePinsTest, NothingStaysHeldWhenAddingFails) {
  const auto kept = pin({{0, page}});
  fake_.fail_next("cuMemHostRegister", 1, cuda::out_of_memory);
  EXPECT_FALSE(pins->add({{0, 4 * page}}, -1));
  EXPECT_EQ(held(), page);
  EXPECT_EQ(budget->used_bytes(), page);
  EXPECT_TRUE(pins->has(kept));
  EXPECT_FALSE(pins->add({{0, file_bytes}}, 7));  // there is no such device
  EXPECT_EQ(held(), page);
}

TEST_F(FilePinsTest, ClosedMeansNoMore) {
  pin({{0, file_bytes}});
  auto use = pins->use(0);
  pins->close(false);
  EXPECT_EQ(held(), 17 * page);  // a copy still uses them
  use = {};
  pins->close(true);
  EXPECT_EQ(held(), 0U);
  EXPECT_EQ(pins->add({{0, 1}}, -1).error().kind, ErrorKind::closed);
}

// The page tables are a witness of their own: here the stamp says nothing, as of a write that began
// before the pin.
TEST_F(FilePinsTest, AWriteThatBeganBeforeThePinIsSeenInThePageTables) {
  const auto presence = os::PagePresence::open();
  ASSERT_TRUE(presence);
  for (const bool has_writer : {false, true}) {
    const auto open_writer = [&] {
      return os::Descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    };
    auto writer = has_writer ? open_writer() : os::Descriptor();
    const auto stamp = os::read_settled_stamp(file.get());
    ASSERT_TRUE(stamp);
    auto range = PinnedRange::map(file.get(), {0, 4 * page}, *stamp);
    ASSERT_TRUE(range) << range.error().message();
    (*range)->fill();
    ASSERT_TRUE((*range)->hold(space(), -1, has_writer));
    if (!has_writer) writer = open_writer();
    EXPECT_TRUE((*range)->all_present(*presence, {0, 4 * page}));
    ASSERT_EQ(::fallocate(writer.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, page, page), 0);
    EXPECT_FALSE((*range)->all_present(*presence, {0, 4 * page}));
  }
}

// Two mappings that touch would be one to the kernel, whose page faults enter pages beside the one
// that is asked for: here in place of one that was replaced.
TEST_F(FilePinsTest, AMappingBesideAnotherHidesNoChange) {
  // Small enough for no alignment, so that the kernel takes neighbouring addresses.
  constexpr std::uint64_t size = 350 * page;
  const auto presence = os::PagePresence::open();
  ASSERT_TRUE(presence);
  const os::Descriptor writer(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::ftruncate(writer.get(), 2 * size), 0);
  const auto stamp = os::read_settled_stamp(file.get());
  ASSERT_TRUE(stamp);
  auto held = PinnedRange::map(file.get(), {size, size}, *stamp);
  ASSERT_TRUE(held);
  ASSERT_TRUE((*held)->hold(space(), -1, true));
  ASSERT_EQ(::fallocate(writer.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, size, page), 0);
  char read_again = 'x';
  ASSERT_EQ(::pread(file.get(), &read_again, 1, size), 1);
  auto below = PinnedRange::map(file.get(), {0, size}, *stamp);
  ASSERT_TRUE(below);
  (*below)->fill();
  EXPECT_FALSE((*held)->all_present(*presence, {size, size}));
}

TEST(PinBudgetTest, TakesUpToItsLimit) {
  PinBudget budget(10);
  EXPECT_TRUE(budget.take(10));
  EXPECT_FALSE(budget.take(1));
  EXPECT_FALSE(budget.take(UINT64_MAX));
  budget.give_back(4);
  EXPECT_TRUE(budget.take(4));
}

}  // namespace
}  // namespace straightway::memory
