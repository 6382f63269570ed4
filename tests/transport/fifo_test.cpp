#include "transport/fifo.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>

namespace straightway::transport {
namespace {

TEST(FifoTest, IsADequeThatAllocatesWhenTold) {
  Fifo<std::unique_ptr<int>> fifo;
  std::deque<int> model;
  std::minstd_rand random(1);
  for (int i = 0; i < 10000; ++i) {
    if (random() % 100 < 52) {
      fifo.reserve(fifo.size() + 1);
      fifo.push_back(std::make_unique<int>(i));
      model.push_back(i);
    } else if (!model.empty()) {
      const auto taken = std::move(fifo.front());
      fifo.pop_front();
      ASSERT_EQ(*taken, model.front());
      model.pop_front();
    }
    ASSERT_EQ(fifo.size(), model.size());
    ASSERT_EQ(fifo.empty(), model.empty());
    for (std::size_t k = 0; k < std::min<std::size_t>(model.size(), 5); ++k) {
      ASSERT_EQ(*fifo[k], model[k]);
    }
  }
  fifo.clear();
  EXPECT_TRUE(fifo.empty());
}

}  // namespace
}  // namespace straightway::transport
