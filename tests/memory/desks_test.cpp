#include "memory/desks.hpp"

#include <gtest/gtest.h>

namespace straightway::memory {
namespace {

constexpr std::uint64_t KiB = 1024;
constexpr std::uint64_t MiB = KiB * KiB;

class PlainDesk final : public Desk {
 public:
  explicit PlainDesk(std::size_t size) : bytes_(size) {}
  std::byte* data() const override { return bytes_.data(); }
  std::size_t size_bytes() const override { return bytes_.size(); }
  Result<void> copy(Direction, std::uint64_t, std::size_t, std::optional<void*>) override {
    return {};
  }
  bool is_idle(std::optional<void*>) override { return true; }
  Result<void> copy_held(std::uint64_t, std::byte*, std::size_t, std::optional<void*>) override {
    return {};
  }

 private:
  mutable std::vector<std::byte> bytes_;
};

// Only desks; all else of a space is not asked for.
class DeskSpace final : public Space {
 public:
  int made = 0;
  bool refuse = false;
  SpaceKind kind() const override { return SpaceKind::cuda; }
  Result<std::optional<MemoryRange>> find(const void*, std::uint64_t) const override {
    return Error{};
  }
  Result<std::unique_ptr<Pinned>> pin(std::int32_t, std::size_t, std::uint32_t) override {
    return Error{};
  }
  Result<std::unique_ptr<Lane>> open_lane(std::int32_t) override { return Error{}; }
  Result<std::unique_ptr<Desk>> open_desk(std::int32_t, std::size_t size_bytes) override {
    if (refuse) return Error{};
    ++made;
    return std::unique_ptr<Desk>(std::make_unique<PlainDesk>(size_bytes));
  }
  Result<void> can_hold_pages(std::int32_t) override { return {}; }
  Result<std::unique_ptr<HeldPages>> hold_pages(std::int32_t, void*, std::size_t) override {
    return Error{};
  }
  Result<void> in_context(std::int32_t, const std::function<void()>&) override { return Error{}; }
  Result<std::unique_ptr<Mark>> mark_stream(std::int32_t, std::optional<void*>) override {
    return Error{};
  }
};

TEST(DesksTest, KeepsWhatIsGivenBack) {
  DeskSpace space;
  Desks desks(64 * MiB, 256 * KiB, MiB);
  for (int i = 0; i < 5; ++i) {
    auto desk = desks.take(space, 0, 4096);
    ASSERT_TRUE(desk && *desk);
    EXPECT_EQ((*desk)->size_bytes(), 256 * KiB);
    desks.give(0, 4096, std::move(*desk));
  }
  EXPECT_EQ(space.made, 1);
  auto other = desks.take(space, 1, 4096);  // of another device
  EXPECT_EQ(space.made, 2);
}

TEST(DesksTest, IsBoundedForEachDevice) {
  DeskSpace space;
  Desks desks(64 * MiB, 256 * KiB, MiB);
  EXPECT_LE(desks.budget_bytes(), 64 * MiB / 10);
  std::vector<std::unique_ptr<Desk>> taken;
  for (;;) {
    auto desk = desks.take(space, 0, 256 * KiB);
    ASSERT_TRUE(desk);
    if (!*desk) break;
    taken.push_back(std::move(*desk));
  }
  EXPECT_EQ(taken.size(), 15U);
  auto large = desks.take(space, 0, 256 * KiB + 1);
  ASSERT_TRUE(large && *large);
  EXPECT_EQ((*large)->size_bytes(), MiB);
  EXPECT_FALSE(*desks.take(space, 0, MiB));
  EXPECT_TRUE(*desks.take(space, 1, MiB));
}

TEST(DesksTest, ASmallBudgetHasNone) {
  DeskSpace space;
  Desks desks(2 * MiB, 256 * KiB, MiB);
  EXPECT_EQ(desks.budget_bytes(), 0U);
  EXPECT_FALSE(*desks.take(space, 0, 1));
}

TEST(DesksTest, ABrokenOrRefusedOneMakesRoomForTheNext) {
  DeskSpace space;
  Desks desks(64 * MiB, 256 * KiB, MiB);
  space.refuse = true;
  EXPECT_FALSE(desks.take(space, 0, MiB));
  space.refuse = false;
  auto desk = desks.take(space, 0, MiB);
  ASSERT_TRUE(desk && *desk);
  desks.give(0, MiB, nullptr);
  EXPECT_TRUE(*desks.take(space, 0, MiB));
}

}  // namespace
}  // namespace straightway::memory
