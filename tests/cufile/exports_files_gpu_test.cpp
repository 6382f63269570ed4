// Handles, buffers and blocking transfers, through the exported functions, on the simulated GPU.

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <thread>

#include "tests/cufile/library.hpp"

namespace straightway::cufile {
namespace {

constexpr std::size_t MiB = 1 << 20;

struct Answer {
  ssize_t result;
  int error;
  bool operator==(const Answer&) const = default;
};
void PrintTo(const Answer& answer, std::ostream* out) {
  *out << answer.result << " errno " << answer.error;
}
Answer failure(int error) { return {-1, error}; }

class Files : public CufileGpuTest {
 protected:
  Files() : bytes(tests::pattern(8 * MiB + 4321)), path(folder.write("data", bytes)) {}

  Answer read(void* token, void* base, std::size_t size, off_t offset = 0, off_t memory = 0) {
    errno = 0;
    const ssize_t result = library.cuFileRead(token, base, size, offset, memory);
    return {result, errno};
  }
  Answer write(void* token, const void* base, std::size_t size, off_t offset = 0,
               off_t memory = 0) {
    errno = 0;
    const ssize_t result = library.cuFileWrite(token, base, size, offset, memory);
    return {result, errno};
  }
  std::vector<char> part(std::size_t from, std::size_t size) const {
    return {bytes.begin() + static_cast<std::ptrdiff_t>(from),
            bytes.begin() + static_cast<std::ptrdiff_t>(from + size)};
  }

  std::vector<char> bytes;
  std::string path;
};

TEST_F(Files, ReadsAnyAlignmentIntoDeviceAndHostMemory) {
  void* token = register_fd(open_file(path, O_RDONLY));
  EXPECT_EQ(library.cuFileUseCount(), 1);
  auto* device = static_cast<char*>(device_memory(9 * MiB));
  std::vector<char> host(9 * MiB);
  for (const bool registered : {false, true}) {
    if (registered) {
      ASSERT_EQ(library.cuFileBufRegister(device, 9 * MiB, 0).code, 0);
    }
    for (const off_t offset : {0L, 1L, 512L, 4096L, 1L << 20}) {
      for (const std::size_t size : {1UL, 100UL, 4096UL, 70'000UL, 5 * MiB + 3}) {
        for (const off_t memory : {0L, 1L, 4096L}) {
          ASSERT_EQ(read(token, device, size, offset, memory),
                    (Answer{static_cast<ssize_t>(size), 0}));
          ASSERT_EQ(device_bytes(device + memory, size),
                    part(static_cast<std::size_t>(offset), size));
          ASSERT_EQ(read(token, host.data(), size, offset, memory).result,
                    static_cast<ssize_t>(size));
          ASSERT_EQ(std::memcmp(&host[static_cast<std::size_t>(memory)], &bytes[offset], size), 0);
        }
      }
    }
  }
}

TEST_F(Files, WritesAnyAlignment) {
  const std::string target = folder.path("target");
  void* token = register_fd(open_file(target, O_RDWR | O_CREAT));
  auto* device = static_cast<char*>(device_memory(9 * MiB));
  fill_device(device, bytes);
  std::vector<char> expected;
  for (const auto& [offset, size, memory] :
       {std::tuple{0UL, 100UL, 1UL}, {70UL, 4096UL, 0UL}, {8192UL, 3 * MiB + 1, 7UL}}) {
    ASSERT_EQ(write(token, device, size, static_cast<off_t>(offset), static_cast<off_t>(memory)),
              (Answer{static_cast<ssize_t>(size), 0}));
    expected.resize(std::max(expected.size(), offset + size));
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(memory), size,
                expected.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  ASSERT_EQ(write(token, bytes.data(), 1000, 5000), (Answer{1000, 0}));
  std::copy_n(bytes.begin(), 1000, expected.begin() + 5000);
  EXPECT_EQ(folder.read("target"), expected);
}

TEST_F(Files, ReadsStopShortAtTheEnd) {
  void* token = register_fd(open_file(path));
  void* device = device_memory(MiB);
  EXPECT_EQ(read(token, device, MiB, 8 * MiB), (Answer{4321, 0}));
  EXPECT_EQ(device_bytes(device, 4321), part(8 * MiB, 4321));
  EXPECT_EQ(read(token, device, MiB, 9 * MiB), (Answer{0, 0}));
  EXPECT_EQ(read(token, device, 0), (Answer{0, 0}));
}

TEST_F(Files, BadRequestsAnswerTheMeasuredCodes) {
  void* token = register_fd(open_file(path));
  char* device = static_cast<char*>(device_memory(2 * MiB));
  char* registered = static_cast<char*>(device_memory(2 * MiB));
  ASSERT_EQ(library.cuFileBufRegister(registered, MiB, 0).code, 0);
  EXPECT_EQ(read(nullptr, device, 1), failure(EINVAL));
  EXPECT_EQ(read(token, nullptr, 1), failure(EINVAL));
  EXPECT_EQ(read(reinterpret_cast<void*>(0x1234), device, 1), failure(5027));
  EXPECT_EQ(read(token, device, 1, -1), failure(5022));
  EXPECT_EQ(read(token, registered, 1, 0, -1), failure(5030));
  EXPECT_EQ(read(token, device + MiB, 1, 0, -1), failure(5030));  // the vendor's obeys
  EXPECT_EQ(read(token, registered, MiB + 1), failure(5017));
  EXPECT_EQ(read(token, registered, MiB, 0, 1), failure(5017));
  EXPECT_EQ(read(token, registered, 1, 0, 2 * MiB), failure(5017));
  EXPECT_EQ(read(token, device, 1, 0, 2 * MiB), failure(EIO));
  EXPECT_EQ(read(token, device, 2 * MiB + 1), failure(EPERM));
  EXPECT_EQ(read(token, device, 2 * MiB, 0, 1), failure(EPERM));
  EXPECT_EQ(read(token, device, ~std::size_t{0}), failure(5017));
  void* unmapped = ::mmap(nullptr, MiB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(read(token, unmapped, 4096), failure(EPERM));
  ::munmap(unmapped, MiB);
  EXPECT_EQ(read(token, registered + 4096, 4096, 4096).result, 4096);  // interior pointer
}

TEST_F(Files, DirectionsFollowTheDescriptor) {
  void* device = device_memory(MiB);
  void* reader = register_fd(open_file(path, O_RDONLY));
  void* writer = register_fd(open_file(path, O_WRONLY));
  EXPECT_EQ(write(reader, device, 1), failure(5019));
  EXPECT_EQ(read(writer, device, 1), failure(5019));
}

TEST_F(Files, HandlesEndOnce) {
  const int fd = open_file(path);
  void* token = register_fd(fd);
  void* device = device_memory(MiB);
  EXPECT_EQ(code_of_registering(fd), 5028);
  library.cuFileHandleDeregister(token);
  library.cuFileHandleDeregister(token);
  library.cuFileHandleDeregister(nullptr);
  library.cuFileHandleDeregister(reinterpret_cast<void*>(0x999));
  EXPECT_EQ(library.cuFileUseCount(), 1);
  EXPECT_EQ(read(token, device, 1), failure(5027));
  void* again = register_fd(fd);
  EXPECT_NE(again, token);
  void* twin = register_fd(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  EXPECT_EQ(read(twin, device, 10).result, 10);
  library.cuFileDriverClose_v2();
  EXPECT_EQ(read(again, device, 1), failure(5027));
  EXPECT_EQ(library.cuFileUseCount(), 1);  // as the vendor's: the read opened the driver
}

TEST_F(Files, DescriptorsThatCannotServeAreRefused) {
  void* token = nullptr;
  abi::Descriptor good{abi::opaque_fd, {open_file(path)}, nullptr};
  EXPECT_EQ(library.cuFileHandleRegister(nullptr, &good).code, 5022);
  EXPECT_EQ(library.cuFileHandleRegister(&token, nullptr).code, 5022);
  EXPECT_EQ(code_of_registering(-1), 5022);
  EXPECT_EQ(code_of_registering(987'654), 5022);
  EXPECT_EQ(code_of_registering(open_file(folder.path(""), O_RDONLY | O_DIRECTORY)), 5018);
  EXPECT_EQ(code_of_registering(open_file("/dev/null")), 5018);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  EXPECT_EQ(code_of_registering(ends[0]), 5018);
  EXPECT_EQ(code_of_registering(open_file("/proc/self/status", O_RDONLY)), 5027);
  for (const int flag : {O_APPEND, O_NONBLOCK, O_NOFOLLOW, O_PATH}) {
    EXPECT_EQ(code_of_registering(open_file(path, O_RDWR | flag)), 5019) << flag;
  }
  for (const int flag : {O_NOCTTY, O_SYNC, O_DSYNC, O_CLOEXEC}) {
    EXPECT_EQ(code_of_registering(open_file(path, O_RDWR | flag)), 0) << flag;
  }
  for (const int type : {0, 2, 3, 4, 99, -1}) {
    EXPECT_EQ(code_of_registering(good.fd, type), 5008) << type;
  }
}

TEST_F(Files, BuffersAnswerTheMeasuredCodes) {
  char* device = static_cast<char*>(device_memory(2 * MiB));
  EXPECT_THAT(library.cuFileBufDeregister(device).code,
              testing::AnyOf(5006, 5024));  // before the first open, or after a close
  EXPECT_EQ(library.cuFileBufRegister(nullptr, 1, 0).code, 5022);
  EXPECT_EQ(library.cuFileBufRegister(device, 0, 0).code, 5022);
  EXPECT_EQ(library.cuFileUseCount(), 0);
  EXPECT_EQ(library.cuFileBufRegister(device, MiB, 999).code, 0);
  EXPECT_EQ(library.cuFileUseCount(), 1);
  EXPECT_EQ(library.cuFileBufRegister(device, 4096, 0).code, 5023);
  EXPECT_EQ(library.cuFileBufRegister(device + 4096, 4096, -1).code, 0);
  EXPECT_EQ(library.cuFileBufRegister(device + 1, 3 * MiB, 0).code, 5014);
  std::vector<char> host(100);
  EXPECT_EQ(library.cuFileBufRegister(host.data(), 100, 0).code, 0);
  EXPECT_EQ(library.cuFileBufRegister(reinterpret_cast<void*>(0x4242'0000), 4096, 0).code, 0);
  memory::cuda::DevicePointer managed = 0;
  ASSERT_EQ(fake.user.alloc_managed(&managed, 4096, 1), 0);
  EXPECT_EQ(library.cuFileBufRegister(reinterpret_cast<void*>(managed), 4096, 0).code, 5013);
  EXPECT_EQ(library.cuFileBufDeregister(nullptr).code, 5022);
  EXPECT_EQ(library.cuFileBufDeregister(device + 64).code, 5024);
  EXPECT_EQ(library.cuFileBufDeregister(device).code, 0);
  EXPECT_EQ(library.cuFileBufDeregister(device).code, 5024);
  library.cuFileDriverClose_v2();
  EXPECT_EQ(library.cuFileBufDeregister(host.data()).code, 5024);
}

TEST_F(Files, ThePinnedLimitHolds) {
  EXPECT_EQ(library.cuFileDriverSetMaxPinnedMemSize(2048).code, 0);
  char* device = static_cast<char*>(device_memory(4 * MiB));
  EXPECT_EQ(library.cuFileBufRegister(device, 4 * MiB, 0).code, 5016);
  EXPECT_EQ(library.cuFileBufRegister(device, 2 * MiB, 0).code, 0);
  EXPECT_EQ(library.cuFileBufRegister(device + 1, 1, 0).code, 5016);
  EXPECT_EQ(library.cuFileBufDeregister(device).code, 0);
  EXPECT_EQ(library.cuFileBufRegister(device + 1, 1, 0).code, 0);
  library.cuFileDriverClose_v2();
  EXPECT_EQ(library.cuFileBufRegister(device, 4 * MiB, 0).code, 0);  // a close forgets it
}

TEST_F(Files, ABufferThatWasFreedIsRefused) {
  void* token = register_fd(open_file(path));
  void* device = device_memory(MiB);
  ASSERT_EQ(library.cuFileBufRegister(device, MiB, 0).code, 0);
  ASSERT_EQ(fake.user.free(reinterpret_cast<std::uintptr_t>(device)), 0);
  EXPECT_EQ(read(token, device, 4096), failure(5022));
  EXPECT_EQ(library.cuFileBufDeregister(device).code, 0);
}

TEST_F(Files, AFailingDeviceIsACudaErrorAndTheNextContextWorks) {
  if (testing::UnitTest::GetInstance()->test_to_run_count() > 1) {
    GTEST_SKIP() << "it breaks the GPU of the process that the other tests use";
  }
  void* token = register_fd(open_file(path));
  fake.fail_copies(700);
  EXPECT_EQ(read(token, device_memory(MiB), MiB).result, -5011);
  fake.heal();
  ASSERT_EQ(fake.user.primary_reset(0), 0);
  use_device();
  EXPECT_EQ(read(token, device_memory(MiB), MiB).result, static_cast<ssize_t>(MiB));
}

TEST_F(Files, VectorsOfDeviceAndHostMemory) {
  void* token = register_fd(open_file(path));
  char* device = static_cast<char*>(device_memory(MiB));
  std::vector<char> host(8192);
  const abi::Piece pieces[] = {{device, 4096}, {host.data(), 8192}, {device + 8192, 4096}};
  EXPECT_EQ(library.cuFileReadv(token, pieces, 3, 100, 1), 16384);
  EXPECT_EQ(device_bytes(device, 4096), part(100, 4096));
  EXPECT_EQ(host, part(4196, 8192));
  EXPECT_EQ(device_bytes(device + 8192, 4096), part(12388, 4096));
  void* target = register_fd(open_file(folder.path("out"), O_RDWR | O_CREAT));
  EXPECT_EQ(library.cuFileWritev(target, pieces, 3, 0, 0), 16384);
  EXPECT_EQ(folder.read("out"), part(100, 16384));
  const auto refused = [&](const abi::Piece* some, std::size_t count, off_t offset) {
    errno = 0;
    return library.cuFileReadv(token, some, count, offset, 0) == -1 && errno == EINVAL;
  };
  const std::vector<abi::Piece> many(2000, {device, 1});
  const abi::Piece null_piece{nullptr, 5};
  const abi::Piece huge[] = {{device, ~std::size_t{0} >> 1}, {device, 10}};
  EXPECT_TRUE(refused(pieces, 0, 0));
  EXPECT_TRUE(refused(nullptr, 1, 0));
  EXPECT_TRUE(refused(pieces, 3, -1));
  EXPECT_TRUE(refused(many.data(), many.size(), 0));
  EXPECT_TRUE(refused(&null_piece, 1, 0));
  EXPECT_TRUE(refused(huge, 2, 0));
}

// A file system in user space: bytes by its own functions.
struct UserFile {
  std::vector<char> bytes;
  ssize_t lie = 0;  // what read answers, if not 0
};
ssize_t user_read(const void* handle, char* to, std::size_t size, off_t offset,
                  const abi::RdmaInfo*) {
  const auto& file = *static_cast<const UserFile*>(handle);
  if (file.lie != 0) return file.lie;
  const auto from = static_cast<std::size_t>(offset);
  if (from >= file.bytes.size()) return 0;
  const std::size_t count = std::min({size, file.bytes.size() - from, std::size_t{700'000}});
  std::memcpy(to, &file.bytes[from], count);
  return static_cast<ssize_t>(count);
}
ssize_t user_write(const void* handle, const char* from, std::size_t size, off_t offset,
                   const abi::RdmaInfo*) {
  auto& file = *static_cast<UserFile*>(const_cast<void*>(handle));
  const auto to = static_cast<std::size_t>(offset);
  file.bytes.resize(std::max(file.bytes.size(), to + size));
  std::memcpy(&file.bytes[to], from, size);
  return static_cast<ssize_t>(size);
}

TEST_F(Files, FileSystemsInUserSpaceMoveTheirOwnBytes) {
  UserFile file{bytes};
  const abi::FileOperations operations{nullptr, nullptr, nullptr, user_read, user_write};
  abi::Descriptor descriptor{abi::userspace_fs, {}, &operations};
  descriptor.pointer = &file;
  void* token = nullptr;
  ASSERT_EQ(library.cuFileHandleRegister(&token, &descriptor).code, 0);
  char* device = static_cast<char*>(device_memory(9 * MiB));
  EXPECT_EQ(read(token, device, 9 * MiB, 3).result, static_cast<ssize_t>(bytes.size() - 3));
  EXPECT_EQ(device_bytes(device, bytes.size() - 3), part(3, bytes.size() - 3));
  std::vector<char> host(5000);
  EXPECT_EQ(read(token, host.data(), 5000, 7).result, 5000);
  EXPECT_EQ(host, part(7, 5000));
  EXPECT_EQ(write(token, device, 2 * MiB, 0).result, static_cast<ssize_t>(2 * MiB));
  EXPECT_EQ(std::memcmp(file.bytes.data(), &bytes[3], 2 * MiB), 0);
  EXPECT_EQ(read(token, host.data(), 8, std::numeric_limits<off_t>::max() - 3), failure(EINVAL));
  file.lie = -EACCES;
  EXPECT_EQ(read(token, host.data(), 10), failure(EACCES));
  file.lie = 1 << 30;  // more than was asked for
  EXPECT_EQ(read(token, host.data(), 10), failure(EIO));
  const abi::FileOperations none{};
  descriptor.operations = &none;
  ASSERT_EQ(library.cuFileHandleRegister(&token, &descriptor).code, 0);
  EXPECT_EQ(read(token, host.data(), 10), failure(5008));
}

TEST_F(Files, CountersCountPartsAndCalls) {
  ASSERT_EQ(library.cuFileDriverOpen().code, 0);
  ASSERT_EQ(library.cuFileSetStatsLevel(3).code, 0);
  ASSERT_EQ(library.cuFileStatsStart().code, 0);
  ASSERT_EQ(::truncate(path.c_str(), 80 * MiB), 0);
  void* token = register_fd(open_file(path));
  char* device = static_cast<char*>(device_memory(72 * MiB));
  std::vector<char> host(4096);
  ASSERT_EQ(library.cuFileBufRegister(device, 72 * MiB, 0).code, 0);
  EXPECT_EQ(read(token, device, 16 * MiB).result, static_cast<ssize_t>(16 * MiB));  // 2 parts
  EXPECT_EQ(read(token, device, 72 * MiB).result, static_cast<ssize_t>(72 * MiB));  // 4
  EXPECT_EQ(read(token, device, 100, 1).result, 100);
  EXPECT_EQ(read(token, host.data(), 4096).result, 4096);
  EXPECT_EQ(read(token, device, 4096, -1).result, -1);
  EXPECT_EQ(read(token, device, 4096, 90 * MiB).result, 0);
  std::vector<char> out(abi::stats_layout(1200).level3_bytes());
  ASSERT_EQ(library.cuFileGetStatsL3(out.data()).code, 0);
  abi::Level1 level1{};
  std::memcpy(&level1, out.data(), sizeof(level1));
  abi::PerGpu gpu{};
  std::memcpy(&gpu, &out[abi::stats_layout(1200).gpus_at()], sizeof(gpu));
  EXPECT_EQ(level1.read.ok, 5U);
  EXPECT_EQ(level1.read.err, 1U);
  EXPECT_EQ(level1.read_bytes, 88 * MiB + 100 + 4096 + 4096);
  EXPECT_EQ(level1.handle_register.ok, 1U);
  EXPECT_EQ(level1.buffer_register.ok, 1U);
  EXPECT_EQ(gpu.read.n, 8U);
  EXPECT_EQ(gpu.read.posix, 8U);
  EXPECT_EQ(gpu.read.nvfs, 0U);
  EXPECT_EQ(gpu.read.unaligned, 1U);
  EXPECT_EQ(gpu.read_errors, 1U);
  EXPECT_EQ(gpu.mapped_ok, 1U);
  EXPECT_EQ(gpu.registered_bytes, 72 * MiB);
  EXPECT_NE(gpu.uuid, (std::array<char, 16>{}));
}

TEST_F(Files, WithoutCompatibilityModeAFileNeedsADirectPath) {
  write_config(R"({"properties": {"allow_compat_mode": false}})");
  EXPECT_EQ(code_of_registering(open_file(path)), 5008);
}

TEST_F(Files, WithoutSystemMemoryHostPointersAreRefused) {
  write_config(R"({"properties": {"allow_system_memory": false}})");
  void* token = register_fd(open_file(path));
  std::vector<char> host(100);
  EXPECT_EQ(read(token, host.data(), 100), failure(5013));
  EXPECT_EQ(library.cuFileBufRegister(host.data(), 100, 0).code, 5013);
  EXPECT_EQ(read(token, device_memory(100), 100).result, 100);
}

TEST_F(Files, AChildReadsIntoHostMemory) {
  void* token = register_fd(open_file(path));
  std::vector<char> host(1024);
  ASSERT_EQ(read(token, host.data(), 1024).result, 1024);
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<char> own(1024);
    const bool good = library.cuFileRead(token, own.data(), 1024, 5, 0) == 1024 &&
                      std::memcmp(own.data(), &bytes[5], 1024) == 0;
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(Files, ManyThreadsRegisterReadAndClose) {
  constexpr int threads = 64;
  std::vector<std::thread> all;
  all.reserve(threads);
  std::atomic<int> good{0};
  void* device = device_memory(threads * 4096);
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      for (int round = 0; round < 5; ++round) {
        library.cuFileDriverOpen();
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        abi::Descriptor descriptor{abi::opaque_fd, {fd}, nullptr};
        void* token = nullptr;
        auto* own = static_cast<char*>(device) + i * 4096;
        bool fine = library.cuFileHandleRegister(&token, &descriptor).code == 0;
        fine &= library.cuFileRead(token, own, 4096, i * 4096, 0) == 4096;
        library.cuFileHandleDeregister(token);
        library.cuFileHandleDeregister(token);
        errno = 0;
        fine &= library.cuFileRead(token, own, 4096, 0, 0) == -1 && errno == 5027;
        ::close(fd);
        good += fine ? 1 : 0;
        library.cuFileDriverClose_v2();
      }
    });
  }
  for (auto& thread : all) thread.join();
  // An implicit open may have come between a close and the read of a closed handle.
  EXPECT_GE(good.load(), threads);
}

TEST_F(Files, TenThousandHandlesAndBuffers) {
#ifdef __SANITIZE_ADDRESS__
  constexpr int most = 200;  // UBSan needs descriptors too, and takes a lack of them for faults
#else
  constexpr int most = 10'000;
#endif
  const int fd = open_file(path);
  std::vector<void*> tokens;
  std::vector<int> fds;
  for (int i = 0; i < most; ++i) {
    const int next = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (next < 0) break;  // the limit of open files: as many as there may be
    fds.push_back(next);
    abi::Descriptor descriptor{abi::opaque_fd, {next}, nullptr};
    void* token = nullptr;
    const int code = library.cuFileHandleRegister(&token, &descriptor).code;
    if (code == 5031) break;
    ASSERT_EQ(code, 0);
    tokens.push_back(token);
  }
  EXPECT_GE(tokens.size(), 100U);
  std::vector<char> host(10'000);
  for (char& one : host) ASSERT_EQ(library.cuFileBufRegister(&one, 1, 0).code, 0);
  for (char& one : host) ASSERT_EQ(library.cuFileBufDeregister(&one).code, 0);
  for (void* token : tokens) library.cuFileHandleDeregister(token);
  for (const int one : fds) ::close(one);
}

}  // namespace
}  // namespace straightway::cufile
