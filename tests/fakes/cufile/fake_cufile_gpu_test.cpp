// The stand-in must behave as the vendor's library does where a test relies on it.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "tests/fakes/fake_cufile.hpp"
#include "tests/memory/gpu_fixture.hpp"

namespace straightway::fakes {
namespace {

using testing::Each;

const char* const kvikio_symbols[] = {"cuFileHandleRegister",
                                      "cuFileHandleDeregister",
                                      "cuFileRead",
                                      "cuFileWrite",
                                      "cuFileBufRegister",
                                      "cuFileBufDeregister",
                                      "cuFileDriverOpen",
                                      "cuFileDriverClose_v2",
                                      "cuFileDriverGetProperties",
                                      "cuFileDriverSetPollMode",
                                      "cuFileDriverSetMaxCacheSize",
                                      "cuFileDriverSetMaxPinnedMemSize",
                                      "cuFileBatchIOSetUp",
                                      "cuFileBatchIOSubmit",
                                      "cuFileBatchIOGetStatus",
                                      "cuFileBatchIOCancel",
                                      "cuFileBatchIODestroy",
                                      "cuFileReadAsync",
                                      "cuFileWriteAsync",
                                      "cuFileStreamRegister",
                                      "cuFileStreamDeregister",
                                      "cuFileGetVersion"};

class VendorCufile : public memory::Gpu {
 protected:
  VendorCufile() : cufile_(FAKES_DIR "/cufile/libcufile.so.0") {
    file_ = memfd_create("cufile", MFD_CLOEXEC);
    const std::vector<char> content(8192, 6);
    EXPECT_EQ(pwrite(file_, content.data(), content.size(), 0), 8192);
    read_ = cufile_.find<decltype(read_)>("cuFileRead");
  }
  ~VendorCufile() override {
    cufile_.heal();
    if (handle_ != nullptr) cufile_.find<void (*)(void*)>("cuFileHandleDeregister")(handle_);
    close(file_);
  }
  int register_file() {
    CufileDescriptor descriptor{};
    descriptor.type = 1;
    descriptor.fd = file_;
    return cufile_
        .find<CufileError (*)(void**, CufileDescriptor*)>("cuFileHandleRegister")(&handle_,
                                                                                  &descriptor)
        .code;
  }

  FakeCufile cufile_;
  int file_;
  void* handle_ = nullptr;
  ssize_t (*read_)(void*, void*, std::size_t, off_t, off_t) = nullptr;
};

TEST_F(VendorCufile, ExportsAllThatItsUsersLookUp) {
  for (const char* symbol : kvikio_symbols) {
    EXPECT_NE(cufile_.find<void*>(symbol), nullptr) << symbol;
  }
}

TEST_F(VendorCufile, RegistersAsItWasTold) {
  for (const int code : {5027, 5008}) {
    cufile_.answer_register(code);
    EXPECT_EQ(register_file(), code);
  }
  EXPECT_EQ(cufile_.handles(), 0U);
  cufile_.answer_register(0);
  EXPECT_EQ(register_file(), 0);
  EXPECT_EQ(cufile_.handles(), 1U);
}

TEST_F(VendorCufile, ReadsIntoDeviceMemoryAndCountsTheWay) {
  ASSERT_EQ(register_file(), 0);
  const auto memory = fake_.allocate(0, 8192);
  void* const pointer = const_cast<void*>(memory::as_pointer(memory));
  const auto posix = cufile_.posix();
  const auto nvfs = cufile_.nvfs();
  EXPECT_EQ(read_(handle_, pointer, 4096, 0, 4096), 4096);
  EXPECT_THAT(device_bytes(memory + 4096, 4096), Each(6));
  EXPECT_THAT(device_bytes(memory, 4096), Each(0));
  EXPECT_EQ(cufile_.posix(), posix + 1);  // registered, with no direct path
  cufile_.direct(1);
  EXPECT_EQ(read_(handle_, pointer, 8192, 4096, 0), 4096);  // the file ends
  EXPECT_EQ(cufile_.nvfs(), nvfs + 1);
  EXPECT_EQ(cufile_.posix(), posix + 1);
  fake_.release(memory);
}

TEST_F(VendorCufile, FailsAsItWasTold) {
  ASSERT_EQ(register_file(), 0);
  char byte = 0;
  cufile_.next_transfers(1, -5011, 0);
  EXPECT_EQ(read_(handle_, &byte, 1, 0, 0), -5011);
  cufile_.next_transfers(1, -1, EIO);
  EXPECT_EQ(read_(handle_, &byte, 1, 0, 0), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(read_(handle_, &byte, 1, 0, 0), 1);
  EXPECT_EQ(byte, 6);
  EXPECT_EQ(read_(nullptr, &byte, 1, 0, 0), -5027);
}

}  // namespace
}  // namespace straightway::fakes
