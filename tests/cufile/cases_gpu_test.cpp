// Bad days of others, each with the ID that it has in our list of cases.

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <barrier>
#include <thread>

#include "os/cufile_codes.hpp"
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
  threads.reserve(5);
  std::atomic<int> failed{0};
  std::barrier all_have_it_open(5);
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 10; ++round) {
        if (library.cuFileDriverOpen().code != 0) ++failed;
        all_have_it_open.arrive_and_wait();
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

// A program that ends, and lets go of the library, with everything open and transfers under way.
[[noreturn]] void end_in_the_middle() {
  ::alarm(60);
  ::setenv("CUFILE_STATS_LEVEL", "3", 1);
  static const tests::TempFolder folder;  // so that the exit removes it
  const std::string path = folder.write("data", tests::pattern(1 << 20));
  const fakes::FakeCuda fake;
  const Library library;
  abi::Descriptor descriptor{abi::opaque_fd, {::open(path.c_str(), O_RDWR)}, nullptr};
  void* token = nullptr;
  void* batch = nullptr;
  const bool opened = library.cuFileHandleRegister(&token, &descriptor).code == 0 &&
                      library.cuFileBatchIOSetUp(&batch, 8).code == 0;
  char* memory = new char[1 << 20];  // for as long as the transfers may need it
  std::vector<abi::BatchEntry> entries(
      8, {abi::batch_mode, memory, 0, 0, 1 << 17, token, abi::opcode_read, nullptr});
  const bool begun = library.cuFileBatchIOSubmit(batch, 8, entries.data(), 0).code == 0;
  void* again = ::dlopen(CUFILE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ::dlclose(again);
  ::dlclose(again);  // that of Library
  std::exit(opened && begun ? 0 : 1);
}

TEST(CasesAlone, C2_ExitAndDlcloseWithoutAClose) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(end_in_the_middle(), testing::ExitedWithCode(0), "");
}

// F8: every code has a name, a meaning and an advice.
TEST(CasesAlone, F8_EveryCodeHasANameAndAMeaning) {
  for (int code = 5001; code <= 5050; ++code) {
    if (code == 5021 || code == 5032) continue;  // unused
    const os::CodeText text = os::describe_cufile(code);
    EXPECT_FALSE(text.name.empty()) << code;
    EXPECT_FALSE(text.meaning.empty()) << code;
    EXPECT_FALSE(text.advice.empty()) << code;
  }
  EXPECT_EQ(os::describe_cufile(5027).name, "CU_FILE_HANDLE_NOT_REGISTERED");
  EXPECT_EQ(os::describe_cufile(-5027).name, "CU_FILE_HANDLE_NOT_REGISTERED");
  EXPECT_EQ(os::describe_cufile(0).name, "CU_FILE_SUCCESS");
  EXPECT_EQ(os::describe_cufile(5999).name, "");
}

}  // namespace
}  // namespace straightway::cufile
