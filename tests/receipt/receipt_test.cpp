#include "straightway/receipt.hpp"

#include <gtest/gtest.h>

#include "tests/receipt/receipt_examples.hpp"

namespace straightway {
namespace {

using receipt_tests::staged_read;

TEST(Receipt, EqualityComparesWhatIsPointedTo) {
  const Receipt one = staged_read();
  Receipt other = staged_read();
  EXPECT_NE(one.file, other.file);
  EXPECT_TRUE(one == other);
  auto file = receipt_tests::virtio_file();
  file->path = "b.bin";
  other.file = file;
  EXPECT_FALSE(one == other);
  other.file = nullptr;
  EXPECT_FALSE(one == other);
}

TEST(Receipt, EqualitySeesEveryField) {
  const auto differs = [](const auto& change) {
    Receipt changed = staged_read();
    change(changed);
    return !(changed == staged_read());
  };
  EXPECT_TRUE(differs([](Receipt& r) { r.direction = Direction::write; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.door = Door::cufile; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.memory.address += 1; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.file_offset = 1; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.wanted_bytes = 1; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.moved_bytes = 1; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.ended_early = true; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.end_of_file = 1; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.routes[4].evidence.scope = Scope::machine; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.refused[0] = Reason::no_gpu; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.retries = 1; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.fallbacks = 1; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.fallback_code = 1; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.disk_measured = false; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.disk_bytes = 1; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.found.cold_bytes = 1; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.cold_reason = Reason::cold_kept; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.threads = 1; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.pinned_bytes = 1; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.times.done_ns = 1; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.layer.n = 1; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.ranges = std::make_shared<RangeTable>(); }));
  EXPECT_TRUE(differs([](Receipt& r) { r.machine = nullptr; }));
  EXPECT_TRUE(differs([](Receipt& r) { r.settings = nullptr; }));
}

}  // namespace
}  // namespace straightway
