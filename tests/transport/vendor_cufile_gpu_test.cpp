#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/fakes/fake_cufile.hpp"
#include "tests/memory/gpu_fixture.hpp"
#include "transport/vendor_cufile.hpp"

namespace straightway::transport {
namespace {

using testing::HasSubstr;

constexpr const char* library_path = FAKES_DIR "/cufile/libcufile.so.0";
constexpr std::size_t mib = 1 << 20;

bool all(const std::vector<unsigned char>& bytes, unsigned char value) {
  return std::all_of(bytes.begin(), bytes.end(), [&](unsigned char byte) { return byte == value; });
}

class VendorCufileTest : public memory::Gpu {
 protected:
  VendorCufileTest() : cufile(library_path) {
    cufile.heal();
    fd = memfd_create("vendor", MFD_CLOEXEC);
    const std::vector<char> content(size, 7);
    EXPECT_EQ(pwrite(fd, content.data(), size, 0), static_cast<ssize_t>(size));
    device = fake_.allocate(0, size);
  }
  ~VendorCufileTest() override {
    file.reset();
    library.reset();
    EXPECT_EQ(cufile.handles(), 0U);
    EXPECT_EQ(cufile.buffers(), 0U);
    EXPECT_EQ(cufile.open_count(), 0U);
    cufile.heal();
    fake_.release(device);
    ::close(fd);
  }
  void open() {
    cufile.direct(1);
    library = memory::must(CufileLibrary::open(library_path, {}));
    file = memory::must(CufileFile::make(library, fd));
  }
  std::string refusal() {
    const auto opened = CufileLibrary::open(library_path, {});
    return opened ? "" : opened.error().why;
  }
  Completion move(std::uint64_t offset, std::uint64_t bytes,
                  Direction direction = Direction::read) {
    VendorCufile transport(library, cuda_.space, 0);
    Segment segment;
    segment.cookie = 3;
    segment.direction = direction;
    segment.file = memory::must(transport.attach(FileRef{-1, fd, nullptr, file})).direct_token;
    segment.address = device + offset;
    segment.file_offset = offset;
    segment.size_bytes = segment.envelope_bytes = bytes;
    Completion completion;
    EXPECT_EQ(transport.submit({&segment, 1}), 1U);
    EXPECT_EQ(transport.reap({&completion, 1}), 1U);
    EXPECT_EQ(completion.cookie, 3U);
    return completion;
  }

  static constexpr std::size_t size = 16 * mib;
  fakes::FakeCufile cufile;
  int fd;
  memory::cuda::DevicePointer device = 0;
  std::shared_ptr<CufileLibrary> library;
  std::shared_ptr<CufileFile> file;
};

TEST_F(VendorCufileTest, MovesBytesInBothDirections) {
  open();
  EXPECT_EQ(move(mib, 4 * mib).result, static_cast<std::int64_t>(4 * mib));
  EXPECT_TRUE(all(device_bytes(device + mib, 4 * mib), 7));
  EXPECT_TRUE(all(device_bytes(device, mib), 0));
  const std::vector<unsigned char> nines(mib, 9);
  fake_.write(device, nines.data(), mib);
  EXPECT_EQ(move(0, mib, Direction::write).result, static_cast<std::int64_t>(mib));
  std::vector<unsigned char> written(mib);
  EXPECT_EQ(pread(fd, written.data(), mib, 0), static_cast<ssize_t>(mib));
  EXPECT_TRUE(all(written, 9));
}

TEST_F(VendorCufileTest, RegistersOnlyForTheLengthOfACall) {
  open();
  move(0, 8 * mib);
  EXPECT_EQ(cufile.registrations(), 1U);
  EXPECT_EQ(cufile.buffers(), 0U);
  move(0, 4096);  // the library's own memory does
  EXPECT_EQ(cufile.registrations(), 1U);
}

TEST_F(VendorCufileTest, E17_OneCallLargerThanTheWindowGoesInChunks) {
  cufile.bar_kib(8 << 10);  // 8 MiB, of which half is used
  open();
  EXPECT_EQ(move(0, size).result, static_cast<std::int64_t>(size));
  EXPECT_TRUE(all(device_bytes(device, size), 7));
  EXPECT_EQ(cufile.calls(), 4U);
  EXPECT_EQ(cufile.largest_call(), 4 * mib);
  EXPECT_LE(cufile.most_registered(), 4 * mib);
}

TEST_F(VendorCufileTest, E18_RefusedRegistrationGoesSmallerThenWithout) {
  cufile.register_limit(3 * mib);
  open();
  EXPECT_EQ(move(0, size).result, static_cast<std::int64_t>(size));
  EXPECT_TRUE(all(device_bytes(device, size), 7));
  EXPECT_EQ(cufile.largest_call(), 2 * mib);
  cufile.register_limit(1000);
  EXPECT_EQ(move(0, size).result, static_cast<std::int64_t>(size));
  EXPECT_EQ(cufile.largest_call(), size);  // by way of the library's own memory
}

TEST_F(VendorCufileTest, AnswersAreOneCompletionEach) {
  open();
  cufile.next_transfers(1, -5010, 0);
  EXPECT_EQ(move(0, mib).result, -5010);
  cufile.next_transfers(1, -1, EIO);
  EXPECT_EQ(move(0, mib).result, -EIO);
  cufile.next_transfers(1, -1, 5027);
  EXPECT_EQ(move(0, mib).result, -5027);
  cufile.next_transfers(1, 4096, 0);
  EXPECT_EQ(move(0, mib).result, 4096);
  EXPECT_EQ(move(size - 4096, 4096).result, 4096);
  EXPECT_EQ(cufile.buffers(), 0U);
}

TEST_F(VendorCufileTest, AnswersThatCannotBeAreErrors) {
  open();
  const std::int64_t lowest = INT64_MIN;
  for (const std::int64_t answer :
       {lowest, lowest + 1, -(std::int64_t{1} << 32), std::int64_t{-6000}, std::int64_t{-5000},
        std::int64_t{-4096}, static_cast<std::int64_t>(mib + 1), INT64_MAX}) {
    cufile.answer_transfers(1, answer, 0);
    EXPECT_EQ(move(0, mib).result, -EIO) << answer;
  }
  for (const int code : {0, -5, INT_MIN, INT_MAX, 4999, 6000}) {
    cufile.answer_transfers(1, -1, code);
    EXPECT_EQ(move(0, mib).result, -EIO) << code;
  }
  cufile.answer_transfers(1, -EINVAL, 0);
  EXPECT_EQ(move(0, mib).result, -EINVAL);
  const auto counts = library->counts(Direction::read);
  EXPECT_EQ(counts.bytes, 0U);
  EXPECT_EQ(counts.calls, 15U);
  EXPECT_TRUE(counts.quiet);
  EXPECT_EQ(cufile.registrations(), cufile.deregistrations());
}

TEST_F(VendorCufileTest, TheSameMemoryForTwoTransfersStaysRegisteredForTheSecond) {
  open();
  cufile.hold(1);
  std::thread first([&] { EXPECT_EQ(move(0, 4 * mib).result, static_cast<long>(4 * mib)); });
  while (cufile.held() < 1) std::this_thread::yield();
  std::thread second([&] { EXPECT_EQ(move(0, 8 * mib).result, static_cast<long>(8 * mib)); });
  while (cufile.held() < 2) std::this_thread::yield();
  cufile.let_go(1);
  first.join();
  EXPECT_EQ(cufile.buffers(), 1U);
  cufile.hold(0);
  second.join();
  EXPECT_EQ(cufile.torn(), 0U);
  EXPECT_EQ(cufile.buffers(), 0U);
  EXPECT_EQ(cufile.registrations(), cufile.deregistrations());
}

TEST_F(VendorCufileTest, ManyThreadsTakeBackWhatTheyRegister) {
  cufile.bar_kib(24 << 10);
  cufile.register_limit(5 * mib);
  open();
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t round = 0; round < 30; ++round) {
        const auto offset = (round + i) % 3 * mib;
        const auto bytes = (1 + (round * 7 + i) % 12) * mib;
        // Writes: threads that read into the same memory would race for its bytes.
        EXPECT_EQ(move(offset, bytes, Direction::write).result, static_cast<std::int64_t>(bytes));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(cufile.torn(), 0U);
  EXPECT_EQ(cufile.buffers(), 0U);
  EXPECT_EQ(cufile.registrations(), cufile.deregistrations());
  EXPECT_LE(cufile.most_registered(), 12 * mib);
  // All the room is there again.
  const auto one = library->register_memory(0, device, 3 * mib);
  EXPECT_EQ(one, library->register_memory(0, device + 4 * mib, 3 * mib));
  EXPECT_GE(one, 2 * mib);
  library->deregister_memory(0, device);
  library->deregister_memory(0, device + 4 * mib);
}

TEST_F(VendorCufileTest, ARefusedRegistrationTakesNoRoomAndNothingBack) {
  cufile.bar_kib(32 << 10);
  open();
  for (const int code : {5022, 5023, 5013, -1, INT_MIN}) {
    cufile.answer_buffer(code);
    EXPECT_EQ(move(0, size).result, static_cast<std::int64_t>(size)) << code;
  }
  EXPECT_EQ(cufile.deregistrations(), 0U);
  cufile.answer_buffer(0);
  move(0, size);
  EXPECT_EQ(cufile.most_registered(), size);
}

TEST_F(VendorCufileTest, WhatIsNotRegisteredIsNotAttached) {
  open();
  VendorCufile transport(library, cuda_.space, 0);
  EXPECT_FALSE(transport.attach(FileRef{fd, fd}));
  EXPECT_FALSE(transport.attach(MemoryRange{SpaceKind::host, -1, 4096, 4096}));
  EXPECT_TRUE(transport.attach(MemoryRange{SpaceKind::cuda, 0, 4096, 4096}));
  file->close();
  EXPECT_FALSE(transport.attach(FileRef{-1, fd, nullptr, file}));
}

TEST_F(VendorCufileTest, LibrariesThatAreNotFitAreRefusedWithTheReason) {
  EXPECT_THAT(refusal(), HasSubstr("sees no nvidia-fs"));  // and registers files all the same
  cufile.direct(1);
  cufile.version(1070);
  EXPECT_THAT(refusal(), HasSubstr("too old"));
  cufile.version(1200);
  cufile.answer_open(5033);
  EXPECT_THAT(refusal(), HasSubstr("CU_FILE_NVFS_SETUP_ERROR"));
  const auto relative = CufileLibrary::open("libcufile.so.0", {});
  ASSERT_FALSE(relative);
  EXPECT_THAT(relative.error().why, HasSubstr("absolute"));
  const auto own = CufileLibrary::open(OWN_CUFILE, {});
  ASSERT_FALSE(own);
  EXPECT_THAT(own.error().why, HasSubstr("Straightway's own"));
}

TEST_F(VendorCufileTest, P2pdmaIsSwitchedOnWhereItIsAskedFor) {
  cufile.has_p2pdma(1);
  EXPECT_THAT(refusal(), HasSubstr("P2PDMA switched off"));
  library = memory::must(CufileLibrary::open(library_path, {true, false}));
  EXPECT_TRUE(library->p2pdma());
  file = memory::must(CufileFile::make(library, fd));
  const auto before = library->counts(Direction::read);
  move(0, size);
  const auto after = library->counts(Direction::read);
  EXPECT_EQ(after.p2pdma - before.p2pdma, 1U);
  EXPECT_EQ(after.nvfs + after.posix, before.nvfs + before.posix);
  EXPECT_TRUE(after.knows_p2pdma);
  file.reset();
  library.reset();
  EXPECT_EQ(cufile.p2pdma_is_on(), 0);
}

TEST_F(VendorCufileTest, ASwitchOfTheUsersOwnHolds) {
  cufile.direct(1);
  cufile.has_p2pdma(1);
  cufile.user_p2pdma(1);
  cufile.version(1150);  // which is known to take it by its switch alone
  library = memory::must(CufileLibrary::open(library_path, {}));
  EXPECT_TRUE(library->p2pdma());
  EXPECT_TRUE(library->counts(Direction::read).knows_p2pdma);
  library.reset();
  cufile.user_p2pdma(0);
  const auto open_driver = cufile.find<fakes::CufileError (*)()>("cuFileDriverOpen");
  open_driver();  // somebody else, without it
  library = memory::must(CufileLibrary::open(library_path, {true, false}));
  EXPECT_FALSE(library->p2pdma());
  EXPECT_EQ(cufile.p2pdma_is_on(), 0);
  library.reset();
  cufile.find<fakes::CufileError (*)()>("cuFileDriverClose_v2")();
}

TEST_F(VendorCufileTest, ASwitchIsSetBackWhereTheDriverDidNotOpen) {
  cufile.direct(1);
  cufile.answer_open(5033);
  for (const int user : {0, 1}) {
    cufile.user_p2pdma(user);
    EXPECT_FALSE(CufileLibrary::open(library_path, {true, user != 0}));
    EXPECT_EQ(cufile.p2pdma_is_on(), user);
  }
  cufile.user_p2pdma(0);
  cufile.find<fakes::CufileError (*)(int, bool)>("cuFileSetParameterBool")(7, true);
  EXPECT_FALSE(CufileLibrary::open(library_path, {true, false}));
  EXPECT_EQ(cufile.p2pdma_is_on(), 1);
}

TEST_F(VendorCufileTest, WhatIsNoLibraryOfTheVendorsIsRefused) {
  for (const char* path : {"", "libcufile.so.0", "./libcufile.so.0", "/", FAKES_DIR,
                           FAKES_DIR "/nowhere.so", "/dev/null", "/proc/self/maps"}) {
    EXPECT_FALSE(CufileLibrary::open(path, {})) << path;
  }
  const auto other = CufileLibrary::open(FAKES_DIR "/cuda/libcuda.so.1", {});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().why, HasSubstr("does not export cuFileGetVersion"));
  EXPECT_EQ(cufile.open_count(), 0U);
}

TEST_F(VendorCufileTest, ALibraryThatDoesNotTellItsVersionIsRefused) {
  cufile.direct(1);
  for (const int code : {5001, -1, INT_MIN}) {
    cufile.answer_version(code);
    EXPECT_THAT(refusal(), HasSubstr("does not tell its version")) << code;
  }
  cufile.answer_version(0);
  for (const int number : {0, -1, INT_MIN, 1079}) {
    cufile.version(number);
    EXPECT_THAT(refusal(), HasSubstr("too old")) << number;
  }
  EXPECT_EQ(cufile.open_count(), 0U);
}

TEST_F(VendorCufileTest, ADriverThatDidNotOpenIsLeftAsItWas) {
  cufile.direct(1);
  cufile.answer_open(5033);
  EXPECT_NE(refusal(), "");
  cufile.answer_open(0);
  cufile.direct(0);
  // As the program may, which is content with copies.
  fakes::CufileDescriptor descriptor{};
  descriptor.type = 1;
  descriptor.fd = fd;
  void* handle = nullptr;
  cufile.find<fakes::CufileError (*)()>("cuFileDriverOpen")();
  const auto enter =
      cufile.find<fakes::CufileError (*)(void**, fakes::CufileDescriptor*)>("cuFileHandleRegister");
  EXPECT_EQ(enter(&handle, &descriptor).code, 0);
  cufile.find<void (*)(void*)>("cuFileHandleDeregister")(handle);
  cufile.find<fakes::CufileError (*)()>("cuFileDriverClose_v2")();
}

TEST_F(VendorCufileTest, StatisticsOfTheProgramAreLeftAtTheirLevel) {
  cufile.find<fakes::CufileError (*)()>("cuFileDriverOpen")();
  cufile.find<fakes::CufileError (*)(int)>("cuFileSetStatsLevel")(1);
  open();
  int level = 0;
  cufile.find<fakes::CufileError (*)(int*)>("cuFileGetStatsLevel")(&level);
  EXPECT_EQ(level, 1);
  EXPECT_FALSE(library->counts(Direction::read).cufile_counts);
  file.reset();
  library.reset();
  cufile.find<fakes::CufileError (*)()>("cuFileDriverClose_v2")();
}

TEST_F(VendorCufileTest, IsToldNeitherToCutNorToCopy) {
  open();
  move(0, size);
  EXPECT_EQ(cufile.calls(), 1U);
  EXPECT_EQ(library->counts(Direction::read).cufile_counts, true);
  EXPECT_EQ(library->counts(Direction::read).calls, 1U);
  file.reset();
  library.reset();
  cufile.direct(0);
  cufile.copy_in_silence(0);
  // Had it been told nothing, it would register the file here, and copy.
  EXPECT_THAT(refusal(), HasSubstr("sees no nvidia-fs"));
}

TEST_F(VendorCufileTest, AnOpenLibraryIsUsedAsItIs) {
  cufile.direct(1);
  const auto open_driver = cufile.find<fakes::CufileError (*)()>("cuFileDriverOpen");
  open_driver();
  open();
  const auto before = library->counts(Direction::read);
  move(0, size);  // which it cuts in two
  const auto after = library->counts(Direction::read);
  EXPECT_EQ(after.nvfs - before.nvfs, 2U);
  EXPECT_EQ(after.calls - before.calls, 1U);
  file.reset();
  library.reset();
  EXPECT_EQ(cufile.open_count(), 1U);
  cufile.find<fakes::CufileError (*)()>("cuFileDriverClose_v2")();
}

TEST_F(VendorCufileTest, An1_15IsNotMadeToCount) {
  cufile.version(1150);
  open();
  EXPECT_FALSE(library->counts(Direction::read).cufile_counts);
}

}  // namespace
}  // namespace straightway::transport
