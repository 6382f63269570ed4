#include "straightway/route.hpp"

#include <gtest/gtest.h>

TEST(Route, NamesAreThoseOfTheStatistics) {
  EXPECT_STREQ(straightway::to_string(straightway::Route::direct_host), "direct-host");
}
