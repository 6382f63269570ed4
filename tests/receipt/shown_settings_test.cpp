#include "receipt/shown_settings.hpp"

#include <gtest/gtest.h>

namespace straightway::receipt {
namespace {

std::size_t count_of(Door door, const std::string& layer) {
  std::size_t count = 0;
  for (const ShownSetting& setting : shown_settings(Settings{}, door))
    count += setting.layer == layer;
  return count;
}

TEST(ShownSettings, EachDoorShowsTheLayersThatItUses) {
  EXPECT_EQ(count_of(Door::straightway, ""), 8u);
  EXPECT_EQ(count_of(Door::straightway, "front"), 0u);
  EXPECT_EQ(count_of(Door::straightway, "cufile"), 0u);
  EXPECT_EQ(count_of(Door::kvikio, "front"), 4u);
  EXPECT_EQ(count_of(Door::kvikio, "cufile"), 9u);
  EXPECT_EQ(count_of(Door::cufile, "front"), 0u);
  EXPECT_EQ(count_of(Door::cufile, "cufile"), 9u);
}

TEST(ShownSettings, ValuesKeepTheirKindAndOrigin) {
  Settings settings;
  settings.cache = {Cache::bypass, Origin::call};
  const auto list = shown_settings(settings, Door::straightway);
  EXPECT_STREQ(list[1].name, "cache");
  EXPECT_EQ(std::get<std::string>(list[1].value), "bypass");
  EXPECT_EQ(list[1].origin, Origin::call);
  EXPECT_EQ(std::get<std::uint64_t>(list[4].value), std::uint64_t{64} << 20);
  EXPECT_STREQ(list[5].name, "pin_bytes");
  EXPECT_EQ(std::get<std::uint64_t>(list[5].value), 0u);
  EXPECT_EQ(std::get<bool>(list[6].value), true);
}

}  // namespace
}  // namespace straightway::receipt
