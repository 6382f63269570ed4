#include "api/second_descriptor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "tests/cases/bad_kernel.hpp"
#include "tests/temp_file.hpp"

namespace straightway {
namespace {

TEST(SecondDescriptor, OnlyDirectRunsNeedItAndARefusalChangesThem) {
  const tests::TempFolder folder;
  tests::BadKernel kernel;
  int asked = 0;
  kernel.on_open = [&](const std::string&, int flags) -> std::optional<int> {
    if ((flags & O_DIRECT) == 0) return std::nullopt;
    ++asked;
    return -EMFILE;
  };
  const auto context = kernel.context();
  const auto path = folder.write("a", tests::pattern(8192));
  auto file = std::move(OpenFile::open(path, "r", {}, context->engine())).value();
  Plan plan;
  plan.settings = context->engine()->settings();
  plan.file = file->facts;
  plan.runs[0] = {Route::buffered, Reason::edge_block, {0, 100}, 4096, 1, false};
  plan.run_count = 1;
  EXPECT_TRUE(secure_direct(plan, *file));
  EXPECT_EQ(asked, 0);
  plan.runs[1] = {Route::direct_host, Reason::cache_bypass, {4096, 4096}, 4096, 4096, true};
  plan.run_count = 2;
  plan.cufile.counters = {.n = 9, .nvfs = 4, .p2pdma = 3, .posix = 2};
  EXPECT_TRUE(uses_direct(plan));
  EXPECT_TRUE(secure_direct(plan, *file));
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(uses_direct(plan));
  EXPECT_EQ(plan.cufile.counters, (LayerCounters{.n = 9, .nvfs = 0, .p2pdma = 0, .posix = 9}));
  EXPECT_EQ(plan.runs[0].reason, Reason::edge_block);
  EXPECT_EQ(plan.runs[1].route, Route::buffered);
  EXPECT_EQ(plan.runs[1].reason, Reason::fell_back);
  Receipt receipt;
  count_refused_direct(receipt, plan, *file);
  EXPECT_EQ(receipt.fallbacks, 1U);
  EXPECT_EQ(receipt.fallback_code, EMFILE);
}

}  // namespace
}  // namespace straightway
