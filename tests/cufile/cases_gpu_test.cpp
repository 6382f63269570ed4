// Bad days of others, each with the ID that it has in our list of cases.

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <thread>

#include "cufile/codes.hpp"
#include "tests/cufile/library.hpp"

namespace straightway::cufile {
namespace {

using Cases = CufileGpuTest;

// C3: opening and closing the whole many times.
TEST_F(Cases, C3_OpensAndClosesAHundredTimes) {
  const auto bytes = tests::pattern(10'000);
  const std::string path = folder.write("data", bytes);
  void* device = device_memory(10'000);
  for (int i = 0; i < 100; ++i) {
    if (i % 2 == 0) {
      ASSERT_EQ(library.cuFileDriverOpen().code, 0);
    }
    const int fd = open_file(path);
    void* token = register_fd(fd);
    ASSERT_EQ(library.cuFileRead(token, device, 10'000, 0, 0), 10'000);
    if (i % 3 == 0) library.cuFileHandleDeregister(token);
    ASSERT_EQ(library.cuFileDriverClose_v2().code, 0);
    ASSERT_EQ(library.cuFileUseCount(), 0);
    ::close(fd);
  }
}

// C4: threads that open and close at the same time.
TEST_F(Cases, C4_ThreadsOpenAndCloseAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 10; ++round) {
        if (library.cuFileDriverOpen().code != 0) ++failed;
        if (library.cuFileDriverClose_v2().code != 0) ++failed;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 0);
  EXPECT_EQ(library.cuFileUseCount(), 0);
}

// C14: the first statement of the process is the open, before any call of CUDA.
TEST(CasesAlone, C14_TheOpenMayBeTheFirstStatement) {
  const pid_t child = ::fork();
  if (child == 0) {
    const Library library;
    ::_exit(library.cuFileDriverOpen().code == 0 && library.cuFileUseCount() == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// F8: every code has a name, a meaning and an advice.
TEST(CasesAlone, F8_EveryCodeHasANameAndAMeaning) {
  for (int code = 5001; code <= 5050; ++code) {
    if (code == 5021 || code == 5032) continue;  // unused
    const CodeText text = describe(code);
    EXPECT_FALSE(text.name.empty()) << code;
    EXPECT_FALSE(text.meaning.empty()) << code;
    EXPECT_FALSE(text.advice.empty()) << code;
  }
  EXPECT_EQ(describe(5027).name, "CU_FILE_HANDLE_NOT_REGISTERED");
  EXPECT_EQ(describe(-5027).name, "CU_FILE_HANDLE_NOT_REGISTERED");
  EXPECT_EQ(describe(0).name, "CU_FILE_SUCCESS");
  EXPECT_EQ(describe(5999).name, "");
}

}  // namespace
}  // namespace straightway::cufile
