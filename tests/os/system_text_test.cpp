#include "os/system_text.hpp"

#include <gtest/gtest.h>

#include "tests/os/temp_tree.hpp"

namespace straightway::os {
namespace {

TEST(SystemText, ReadsUpToTheLimit) {
  const TempTree tree;
  const std::string path = tree.write("file", std::string(10000, 'a'));
  EXPECT_EQ(read_text(path)->size(), 10000U);
  EXPECT_EQ(read_text(path, 100)->size(), 100U);
  EXPECT_FALSE(read_text(tree.root() + "/absent"));
  EXPECT_FALSE(read_text(tree.root())) << "a folder has no text";
}

TEST(SystemText, Numbers) {
  EXPECT_EQ(to_number("512\n"), 512U);
  EXPECT_EQ(to_number("18446744073709551615"), ~std::uint64_t{0});
  EXPECT_EQ(to_number("18446744073709551616"), std::nullopt);
  EXPECT_EQ(to_number("-1"), std::nullopt);
  EXPECT_EQ(to_number(""), std::nullopt);
}

TEST(SystemText, FieldsAndNames) {
  std::string_view rest = "a:b";
  EXPECT_EQ(take_field(rest, ':'), "a");
  EXPECT_EQ(take_field(rest, ':'), "b");
  EXPECT_EQ(rest, "");
  EXPECT_EQ(base_name("/sys/bus/virtio_blk"), "virtio_blk");
  EXPECT_EQ(base_name("vda"), "vda");
}

}  // namespace
}  // namespace straightway::os
