#include <gtest/gtest.h>

#include "straightway/route.hpp"

TEST(Route, NamesAreThoseOfTheStatistics) {
  EXPECT_STREQ(straightway::to_string(straightway::Route::direct_host), "direct-host");
}
