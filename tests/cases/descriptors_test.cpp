// Descriptors on a bad day: none left, no second one for O_DIRECT, a path that means another file.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <mutex>
#include <thread>

#include "tests/cases/bad_kernel.hpp"
#include "tests/cases/in_child.hpp"
#include "tests/temp_file.hpp"

namespace straightway {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

class Descriptors : public testing::Test {
 protected:
  Descriptors() : bytes(tests::pattern(4 * mib + 321)), path(folder.write("a", bytes)) {
    ContextOptions options;
    options.on_warning = [this](std::string_view text) {
      const std::lock_guard lock(mutex);
      warnings.emplace_back(text);
    };
    context = kernel.context(options);
  }
  void SetUp() override {
    const auto file = open();
    if (file.facts()->direct_offset_align_bytes == 0) GTEST_SKIP() << "no O_DIRECT here";
  }
  File open(std::string_view mode = "r") {
    return std::move(File::open(path, mode, {}, context)).value();
  }
  void refuse_direct(int code) {
    kernel.on_open = [code](const std::string&, int flags) -> std::optional<int> {
      if ((flags & O_DIRECT) != 0) return -code;
      return std::nullopt;
    };
  }
  static CallOptions bypass(std::uint64_t offset = 0) {
    CallOptions options;
    options.cache = Cache::bypass;
    options.offset = offset;
    return options;
  }
  static CallOptions direct() {
    CallOptions options;
    options.policy = Policy::direct;
    return options;
  }
  // Page aligned, so that O_DIRECT is planned.
  Memory aligned(std::uint64_t size) {
    storage.assign(size + 4096, 'x');
    const auto at =
        (reinterpret_cast<std::uintptr_t>(storage.data()) + 4095) & ~std::uintptr_t{4095};
    return {reinterpret_cast<void*>(at), size};
  }
  bool holds(const Memory& memory, std::uint64_t offset = 0) const {
    return std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(offset),
                      bytes.begin() + static_cast<std::ptrdiff_t>(offset + memory.size_bytes),
                      static_cast<const char*>(memory.address));
  }

  tests::TempFolder folder;
  tests::BadKernel kernel;
  std::vector<char> bytes;
  std::string path;
  std::mutex mutex;
  std::vector<std::string> warnings;
  std::vector<char> storage;
  std::shared_ptr<Context> context;
};

TEST_F(Descriptors, E3_WhereODirectIsRefusedTheFileIsReadThroughTheCache) {
  for (const int code : {EINVAL, EMFILE, EPERM}) {
    warnings.clear();
    refuse_direct(code);
    const auto file = open();
    for (const std::uint64_t size : {std::uint64_t{65536}, 4 * mib}) {
      const auto memory = aligned(size);
      const auto receipt = file.read_into(memory, bypass());
      ASSERT_TRUE(receipt) << receipt.error().message();
      EXPECT_TRUE(holds(memory));
      const auto& share = receipt->routes[index(Route::buffered)];
      EXPECT_EQ(share.bytes, size);
      EXPECT_EQ(share.reason, Reason::fell_back);
      EXPECT_EQ(receipt->routes[index(Route::direct_host)].bytes, 0U);
      EXPECT_EQ(receipt->fallbacks, 1U);
      EXPECT_EQ(receipt->fallback_code, code);
    }
    ASSERT_EQ(warnings.size(), 1U);  // of this file, once
    EXPECT_NE(warnings[0].find(path), std::string::npos) << warnings[0];
    EXPECT_NE(warnings[0].find("O_DIRECT"), std::string::npos) << warnings[0];
  }
}

TEST_F(Descriptors, E10_ASubmittedReadFallsBackAsABlockingOneDoes) {
  refuse_direct(EINVAL);
  const auto file = open();
  for (const std::uint64_t size : {std::uint64_t{65536}, 4 * mib}) {
    const auto memory = aligned(size);
    const auto blocking = file.read_into(memory, bypass());
    const auto again = aligned(size);
    auto job = file.submit_read(again, bypass());
    ASSERT_TRUE(blocking && job);
    const auto submitted = job->result();
    ASSERT_TRUE(submitted) << submitted.error().message();
    EXPECT_TRUE(holds(again));
    EXPECT_EQ(submitted->fallbacks, blocking->fallbacks);
    EXPECT_EQ(submitted->fallback_code, EINVAL);
    EXPECT_EQ(submitted->routes[index(Route::buffered)].bytes, size);
    EXPECT_EQ(submitted->routes[index(Route::buffered)].reason, Reason::fell_back);
  }
}

TEST_F(Descriptors, E3_OneFilesRefusalIsNotAnothers) {
  folder.write("b", bytes);
  kernel.on_open = [&](const std::string& at, int flags) -> std::optional<int> {
    if ((flags & O_DIRECT) == 0 || at.find("/proc/") == 0) return std::nullopt;
    return -EINVAL;
  };
  auto first = open();
  refuse_direct(EINVAL);
  const auto memory = aligned(mib);
  ASSERT_TRUE(first.read_into(memory, bypass()));
  kernel.on_open = nullptr;
  const auto second = std::move(File::open(folder.path("b"), "r", {}, context)).value();
  const auto receipt = second.read_into(memory, bypass());
  ASSERT_TRUE(receipt);
  EXPECT_EQ(receipt->routes[index(Route::direct_host)].bytes, mib);
  EXPECT_EQ(receipt->fallbacks, 0U);
}

TEST_F(Descriptors, E7_PolicyDirectFailsAtOnceWithTheReason) {
  refuse_direct(EINVAL);
  for (const std::uint64_t size : {std::uint64_t{65536}, 4 * mib}) {
    const auto file = open();
    const auto memory = aligned(size);
    const auto moves = kernel.moves.load();
    const auto receipt = file.read_into(memory, direct());
    ASSERT_FALSE(receipt);
    EXPECT_EQ(receipt.error().kind, ErrorKind::route_refused);
    EXPECT_EQ(receipt.error().code, EINVAL);
    EXPECT_NE(receipt.error().message().find("O_DIRECT"), std::string::npos);
    EXPECT_NE(receipt.error().message().find(path), std::string::npos);
    EXPECT_EQ(kernel.moves.load(), moves);
  }
  refuse_direct(EMFILE);
  const auto file = open();
  const auto receipt = file.read_into(aligned(mib), direct());
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().kind, ErrorKind::too_many_files);
}

TEST_F(Descriptors, H_WithoutProcTheFileIsOpenedAgainByItsPath) {
  kernel.on_open = [](const std::string& at, int) -> std::optional<int> {
    if (at.find("/proc/") == 0) return -ENOENT;
    return std::nullopt;
  };
  const auto memory = aligned(mib);
  const auto receipt = open().read_into(memory, direct());
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_EQ(receipt->routes[index(Route::direct_host)].bytes, mib);
  EXPECT_TRUE(holds(memory));
  EXPECT_TRUE(warnings.empty());
}

TEST_F(Descriptors, H_WithoutProcAReplacedPathIsNotUsed) {
  kernel.on_open = [](const std::string& at, int) -> std::optional<int> {
    if (at.find("/proc/") == 0) return -ENOENT;
    return std::nullopt;
  };
  const auto file = open();
  folder.write("b", tests::pattern(bytes.size(), 99));
  std::filesystem::rename(folder.path("b"), path);
  const auto memory = aligned(4 * mib);
  const auto receipt = file.read_into(memory, bypass());
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_TRUE(holds(memory));
  EXPECT_EQ(receipt->routes[index(Route::buffered)].bytes, 4 * mib);
  EXPECT_EQ(receipt->fallback_code, ESTALE);
  std::filesystem::remove(path);
  const auto again = std::move(File::from_descriptor(file.descriptor(), {}, context)).value();
  EXPECT_TRUE(again.read_into(aligned(mib), bypass()));
}

TEST_F(Descriptors, ADescriptorWithODirectTakesAnyOffset) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  const auto file = std::move(File::from_descriptor(fd, {}, context)).value();
  std::vector<char> memory(1000);
  CallOptions options;
  options.offset = 777;
  const auto receipt = file.read_into({memory.data(), memory.size()}, options);
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_TRUE(std::equal(memory.begin(), memory.end(), bytes.begin() + 777));
  EXPECT_NE(::fcntl(fd, F_GETFL) & O_DIRECT, 0);  // the caller's own is as it was
  ::close(fd);
}

TEST_F(Descriptors, B7_WithoutDescriptorsOpenSaysWhichLimit) {
  kernel.on_open = [](const std::string&, int) { return -EMFILE; };
  const auto file = File::open(path, "r", {}, context);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().kind, ErrorKind::too_many_files);
  EXPECT_EQ(file.error().code, EMFILE);
  EXPECT_NE(file.error().message().find("ulimit -n"), std::string::npos);
}

// The pump's own descriptor comes with the first transfer: refused, then granted.
TEST_F(Descriptors, B7_TheFirstTransferFailsCleanlyAndTheNextWorks) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP()
      << "UBSan looks at memory through a pipe, and takes a lack of descriptors for faults";
#endif
  const auto file = open();
  std::vector<char> memory(bytes.size());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto refused = file.read_into({memory.data(), memory.size()});
  const auto small = file.read_into({memory.data(), 4096});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::too_many_files);
  EXPECT_TRUE(small);
  ASSERT_TRUE(file.read_into({memory.data(), memory.size()}));
  EXPECT_EQ(memory, bytes);
}

// Once the pump runs, everything that it opens later can do without.
TEST_F(Descriptors, B7_ATransferWithoutAnyDescriptorLeftWorks) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP()
      << "UBSan looks at memory through a pipe, and takes a lack of descriptors for faults";
#endif
  const auto file = open();
  ASSERT_TRUE(context->warmup());
  const auto memory = aligned(4 * mib);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto receipt = file.read_into(memory, bypass());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_TRUE(holds(memory));
  EXPECT_EQ(receipt->fallback_code, EMFILE);
}

TEST_F(Descriptors, E3_ALackThatPassesIsForgotten) {
  for (const int code : {EMFILE, ENFILE, ENOMEM, EINVAL}) {
    refuse_direct(code);
    const auto file = open();
    const auto memory = aligned(mib);
    EXPECT_EQ(file.read_into(memory, bypass())->fallback_code, code);
    kernel.on_open = nullptr;
    const auto receipt = file.read_into(memory, bypass());
    ASSERT_TRUE(receipt);
    const auto direct_bytes = receipt->routes[index(Route::direct_host)].bytes;
    EXPECT_EQ(direct_bytes, code == EINVAL ? 0U : mib) << code;
  }
}

TEST_F(Descriptors, H_AForkWhileAThreadOpensWithODirectLeavesTheChildFree) {
  std::atomic<bool> inside{false};
  std::atomic<bool> go_on{false};
  kernel.on_open = [&](const std::string&, int flags) -> std::optional<int> {
    if ((flags & O_DIRECT) == 0) return std::nullopt;
    inside = true;
    while (!go_on.load()) std::this_thread::yield();
    return std::nullopt;
  };
  const auto file = open();
  const auto memory = aligned(mib);
  std::thread other([&] { EXPECT_TRUE(file.read_into(memory, bypass())); });
  while (!inside.load()) std::this_thread::yield();
  EXPECT_EQ(tests::in_child([&] {
              ::alarm(60);  // it would wait for a thread that is not there
              go_on = true;
              std::vector<char> own(2 * mib);
              return file.read_into({own.data(), own.size()}, bypass()) ? 0 : 1;
            }),
            0);
  go_on = true;
  other.join();
  EXPECT_TRUE(holds(memory));
}

// Files on one descriptor, closed in both orders while others open and close.
TEST_F(Descriptors, B10_TwoFilesOnOneDescriptorCloseIndependently) {
  std::atomic<bool> stop{false};
  std::atomic<int> stolen{0};
  std::thread others([&] {
    while (!stop.load()) {
      const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      std::this_thread::yield();
      if (fd >= 0 && ::close(fd) != 0) ++stolen;  // somebody closed ours
    }
  });
  for (int i = 0; i < 200; ++i) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    auto first = std::move(File::from_descriptor(fd, {}, context)).value();
    auto second = std::move(File::from_descriptor(fd, {}, context)).value();
    auto& early = i % 2 == 0 ? first : second;
    auto& late = i % 2 == 0 ? second : first;
    const auto memory = aligned(65536);
    ASSERT_TRUE(early.read_into(memory, bypass()));
    ASSERT_TRUE(early.close());
    ASSERT_TRUE(early.close());
    ASSERT_TRUE(late.read_into(memory, bypass()));
    ASSERT_TRUE(holds(memory));
    ASSERT_TRUE(late.close());
    ASSERT_EQ(::close(fd), 0);  // still the caller's
  }
  stop = true;
  others.join();
  EXPECT_EQ(stolen.load(), 0);
}

TEST_F(Descriptors, H_AFarmOfLinksIsReadAsTheFilesBehind) {
  std::filesystem::create_directories(folder.path("blobs"));
  std::filesystem::create_directories(folder.path("snapshots/main"));
  std::filesystem::rename(path, folder.path("blobs/0123"));
  std::filesystem::create_symlink("../../blobs/0123", folder.path("snapshots/main/model.bin"));
  std::filesystem::create_directory_symlink("snapshots/main", folder.path("latest"));
  std::filesystem::create_symlink("../blobs/none", folder.path("snapshots/gone.bin"));
  std::filesystem::create_symlink("loop", folder.path("loop"));
  const auto file =
      std::move(File::open(folder.path("latest/model.bin"), "r", {}, context)).value();
  const auto plain = std::move(File::open(folder.path("blobs/0123"), "r", {}, context)).value();
  EXPECT_EQ(file.path(), folder.path("latest/model.bin"));
  EXPECT_EQ(file.facts()->filesystem, plain.facts()->filesystem);
  EXPECT_EQ(file.facts()->device, plain.facts()->device);
  EXPECT_EQ(file.facts()->direct_offset_align_bytes, plain.facts()->direct_offset_align_bytes);
  const auto memory = aligned(4 * mib);
  const auto receipt = file.read_into(memory, direct());
  ASSERT_TRUE(receipt) << receipt.error().message();
  EXPECT_TRUE(holds(memory));
  EXPECT_EQ(File::open(folder.path("snapshots/gone.bin"), "r", {}, context).error().kind,
            ErrorKind::not_found);
  EXPECT_EQ(File::open(folder.path("loop"), "r", {}, context).error().code, ELOOP);
}

}  // namespace
}  // namespace straightway
