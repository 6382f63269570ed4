#pragma once
// libcufile.so.0 as a program has it: loaded by its path, its functions found by name.

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "cufile/abi.hpp"
#include "tests/fakes/fake_cuda.hpp"
#include "tests/temp_file.hpp"

#define CUFILE_FUNCTIONS(X)                                                                        \
  X(cuFileDriverOpen, abi::Error())                                                                \
  X(cuFileDriverClose, abi::Error())                                                               \
  X(cuFileDriverClose_v2, abi::Error())                                                            \
  X(cuFileUseCount, long())                                                                        \
  X(cuFileGetVersion, abi::Error(int*))                                                            \
  X(cuFileDriverGetProperties, abi::Error(abi::Properties*))                                       \
  X(cuFileDriverSetPollMode, abi::Error(bool, std::size_t))                                        \
  X(cuFileDriverSetMaxDirectIOSize, abi::Error(std::size_t))                                       \
  X(cuFileDriverSetMaxCacheSize, abi::Error(std::size_t))                                          \
  X(cuFileDriverSetMaxPinnedMemSize, abi::Error(std::size_t))                                      \
  X(cuFileGetBARSizeInKB, abi::Error(int, std::size_t*))                                           \
  X(cuFileDriverGetP2PFlags, abi::Error(int, int*))                                                \
  X(cuFileDriverSetP2PFlags, abi::Error(int, int))                                                 \
  X(cuFileExportPCIeTopology, abi::Error(const char*))                                             \
  X(cuFileGetParameterSizeT, abi::Error(int, std::size_t*))                                        \
  X(cuFileGetParameterBool, abi::Error(int, bool*))                                                \
  X(cuFileGetParameterString, abi::Error(int, char*, int))                                         \
  X(cuFileSetParameterSizeT, abi::Error(int, std::size_t))                                         \
  X(cuFileSetParameterBool, abi::Error(int, bool))                                                 \
  X(cuFileSetParameterString, abi::Error(int, const char*))                                        \
  X(cuFileGetParameterMinMaxValue, abi::Error(int, std::size_t*, std::size_t*))                    \
  X(cuFileSetParameterPosixPoolSlabArray, abi::Error(const std::size_t*, const std::size_t*, int)) \
  X(cuFileGetParameterPosixPoolSlabArray, abi::Error(std::size_t*, std::size_t*, int))             \
  X(cuFileSetParameterGpuBounceBufferSlabArray,                                                    \
    abi::Error(const std::size_t*, const std::size_t*, int))                                       \
  X(cuFileGetParameterGpuBounceBufferSlabArray, abi::Error(std::size_t*, std::size_t*, int))       \
  X(cuFileHandleRegister, abi::Error(void**, abi::Descriptor*))                                    \
  X(cuFileHandleDeregister, void(void*))                                                           \
  X(cuFileBufRegister, abi::Error(const void*, std::size_t, int))                                  \
  X(cuFileBufDeregister, abi::Error(const void*))                                                  \
  X(cuFileRead, ssize_t(void*, void*, std::size_t, off_t, off_t))                                  \
  X(cuFileWrite, ssize_t(void*, const void*, std::size_t, off_t, off_t))                           \
  X(cuFileReadv, ssize_t(void*, const abi::Piece*, std::size_t, off_t, unsigned))                  \
  X(cuFileWritev, ssize_t(void*, const abi::Piece*, std::size_t, off_t, unsigned))                 \
  X(cuFileBatchIOSetUp, abi::Error(void**, unsigned))                                              \
  X(cuFileBatchIOSubmit, abi::Error(void*, unsigned, abi::BatchEntry*, unsigned))                  \
  X(cuFileBatchIOGetStatus, abi::Error(void*, unsigned, unsigned*, abi::BatchEvent*, timespec*))   \
  X(cuFileBatchIOCancel, abi::Error(void*))                                                        \
  X(cuFileBatchIODestroy, void(void*))                                                             \
  X(cuFileReadAsync, abi::Error(void*, void*, std::size_t*, off_t*, off_t*, ssize_t*, void*))      \
  X(cuFileWriteAsync, abi::Error(void*, void*, std::size_t*, off_t*, off_t*, ssize_t*, void*))     \
  X(cuFileStreamRegister, abi::Error(void*, unsigned))                                             \
  X(cuFileStreamDeregister, abi::Error(void*))                                                     \
  X(cuFileSetStatsLevel, abi::Error(int))                                                          \
  X(cuFileGetStatsLevel, abi::Error(int*))                                                         \
  X(cuFileStatsStart, abi::Error())                                                                \
  X(cuFileStatsStop, abi::Error())                                                                 \
  X(cuFileStatsReset, abi::Error())                                                                \
  X(cuFileGetStatsL1, abi::Error(void*))                                                           \
  X(cuFileGetStatsL2, abi::Error(void*))                                                           \
  X(cuFileGetStatsL3, abi::Error(void*))

namespace straightway::cufile {

struct Library {
  Library() {
    void* library = ::dlopen(CUFILE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(::dlerror());
#define CUFILE_FILL(name, ...)                                                       \
  name = reinterpret_cast<std::add_pointer_t<__VA_ARGS__>>(::dlsym(library, #name)); \
  if (name == nullptr) throw std::runtime_error("no " #name);
    CUFILE_FUNCTIONS(CUFILE_FILL)
#undef CUFILE_FILL
  }
#define CUFILE_MEMBER(name, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  CUFILE_FUNCTIONS(CUFILE_MEMBER)
#undef CUFILE_MEMBER
};

// Each test with a closed driver, the values of the shipped file, and no log.
class CufileTest : public testing::Test {
 protected:
  CufileTest() {
    ::setenv("CUFILE_ENV_PATH_JSON", write_config("{}").c_str(), 1);
    ::setenv("STRAIGHTWAY_CUFILE_VERSION", "1.20", 1);
  }
  void TearDown() override {
    while (library.cuFileUseCount() > 0) library.cuFileDriverClose_v2();
  }

  // Takes effect at the next open.
  std::string write_config(const std::string& text) {
    return folder.write("cufile.json", {text.begin(), text.end()});
  }

  static int open_file(const std::string& path, int flags = O_RDWR) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
    EXPECT_GE(fd, 0) << path << ": " << std::strerror(errno);
    return fd;
  }

  // The handle of a descriptor that stays open until the end of the test process.
  void* register_fd(int fd) {
    abi::Descriptor descriptor{abi::opaque_fd, {fd}, nullptr};
    void* token = nullptr;
    EXPECT_EQ(library.cuFileHandleRegister(&token, &descriptor).code, abi::success);
    return token;
  }
  int code_of_registering(int fd, int type = abi::opaque_fd) {
    abi::Descriptor descriptor{type, {fd}, nullptr};
    void* token = nullptr;
    const int code = library.cuFileHandleRegister(&token, &descriptor).code;
    if (code != 0) {
      EXPECT_EQ(token, nullptr);
    }
    return code;
  }

  Library library;
  tests::TempFolder folder;
};

class CufileGpuTest : public CufileTest {
 protected:
  void SetUp() override { ASSERT_EQ(fake.user.alloc(&any_memory, 4096), 0) << "no context yet"; }
  void TearDown() override {
    fake.heal();
    CufileTest::TearDown();
  }
  CufileGpuTest() : cuda(*memory::cuda::load_driver()) {
    cuda.init(0);
    use_device();
  }

  // As a program does: makes the device's primary context current.
  void use_device() {
    memory::cuda::Context context = nullptr;
    EXPECT_EQ(cuda.primary_retain(&context, 0), 0);
    EXPECT_EQ(cuda.context_push(context), 0);
  }

  void* device_memory(std::size_t size) {
    memory::cuda::DevicePointer pointer = 0;
    EXPECT_EQ(fake.user.alloc(&pointer, size), 0);
    return reinterpret_cast<void*>(pointer);
  }
  std::vector<char> device_bytes(const void* from, std::size_t size) {
    std::vector<char> bytes(size);
    EXPECT_EQ(fake.read(reinterpret_cast<std::uintptr_t>(from), bytes.data(), size), 0);
    return bytes;
  }
  void fill_device(void* to, const std::vector<char>& bytes) {
    EXPECT_EQ(fake.write(reinterpret_cast<std::uintptr_t>(to), bytes.data(), bytes.size()), 0);
  }

  fakes::FakeCuda fake;
  memory::cuda::Driver cuda;
  memory::cuda::DevicePointer any_memory = 0;
};

}  // namespace straightway::cufile
