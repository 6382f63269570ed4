#include "drive/sync_thread.hpp"

#include <gtest/gtest.h>

#include <future>
#include <vector>

namespace straightway::drive {
namespace {

TEST(SyncThread, DoesEverythingInOrderOnOneThreadBeforeItEnds) {
  std::vector<int> done;
  std::vector<std::thread::id> threads;
  {
    SyncThread sync;
    for (int i = 0; i < 100; ++i) {
      sync.add([&, i] {
        done.push_back(i);
        threads.push_back(std::this_thread::get_id());
      });
    }
  }
  ASSERT_EQ(done.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(threads, std::vector<std::thread::id>(100, threads.front()));
  EXPECT_NE(threads.front(), std::this_thread::get_id());
}

TEST(SyncThread, MayEndInItsOwnWork) {
  std::promise<bool> own;
  auto sync = std::make_shared<SyncThread>();
  EXPECT_FALSE(sync->on_own_thread());
  std::promise<void> released;
  sync->add([&own, kept = sync, may_end = released.get_future().share()]() mutable {
    may_end.wait();
    const bool here = kept->on_own_thread();
    kept.reset();  // the last reference
    own.set_value(here);
  });
  sync.reset();
  released.set_value();
  EXPECT_TRUE(own.get_future().get());
}

}  // namespace
}  // namespace straightway::drive
