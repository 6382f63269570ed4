#include "os/sealable_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace straightway::os {
namespace {

TEST(SealableMemory, HasItsNameClosesOnExecAndTakesSeals) {
  const auto memory = create_sealable_memory("straightway-test");
  ASSERT_TRUE(memory);
  const auto link =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(memory.get())).string();
  EXPECT_TRUE(link.starts_with("/memfd:straightway-test")) << link;
  EXPECT_EQ(::fcntl(memory.get(), F_GETFD), FD_CLOEXEC);
  ASSERT_EQ(::ftruncate(memory.get(), 4096), 0);
  ASSERT_EQ(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL), 0);
  EXPECT_NE(::ftruncate(memory.get(), 0), 0);
}

}  // namespace
}  // namespace straightway::os
