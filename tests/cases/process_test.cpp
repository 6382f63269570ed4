// What a process may be: limited, filtered, forked, under a storm of signals.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <thread>

#include "tests/cases/bad_kernel.hpp"
#include "tests/cases/in_child.hpp"
#include "tests/temp_file.hpp"

namespace straightway {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr int not_allowed_here = 77;

class Process : public testing::Test {
 protected:
  Process() : bytes(tests::pattern(16 * mib + 321)), path(folder.write("a", bytes)) {}
  static File open(const std::string& path, const std::string& mode,
                   const std::shared_ptr<Context>& context = Context::create().value()) {
    return std::move(File::open(path, mode, {}, context)).value();
  }
  bool reads_right(const File& file, Cache cache = Cache::automatic) const {
    std::vector<char> memory(bytes.size(), 'x');
    CallOptions options;
    options.cache = cache;
    if (!file.read_into({memory.data(), memory.size()}, options) || memory != bytes) return false;
    options.offset = 12345;
    return file.read_into({memory.data(), 100'000}, options) &&
           std::equal(memory.begin(), memory.begin() + 100'000, bytes.begin() + 12345);
  }

  tests::TempFolder folder;
  std::vector<char> bytes;
  std::string path;
};

void ignore_signal(int) {}

// A handler without SA_RESTART, so that every interruptible call is interrupted.
void start_storm() {
  struct sigaction action{};
  action.sa_handler = ignore_signal;
  ::sigaction(SIGALRM, &action, nullptr);
  ::sigaction(SIGCHLD, &action, nullptr);
  const itimerval every{{0, 1000}, {0, 1000}};
  ::setitimer(ITIMER_REAL, &every, nullptr);
}

TEST_F(Process, H_AStormOfSignalsChangesNoByte) {
  EXPECT_EQ(tests::in_child([&] {
              start_storm();
              std::atomic<bool> stop{false};
              std::thread more([&] {
                while (!stop.load()) {
                  ::kill(::getpid(), SIGCHLD);
                  ::usleep(200);
                }
              });
              bool right = true;
              auto context = std::move(Context::create()).value();
              for (int i = 0; i < 4 && right; ++i) {
                const auto file = open(path, "r", context);
                right = reads_right(file) && reads_right(file, Cache::bypass);
                auto out = open(folder.path("out"), "w", context);
                CallOptions options;
                options.sync = Sync::data;
                right = right && out.write_from({bytes.data(), bytes.size()}, options) &&
                        out.write_from({bytes.data(), 50'000}, options) && out.close() &&
                        folder.read("out") == bytes;
              }
              stop = true;
              more.join();
              return right ? 0 : 1;
            }),
            0);
}

// The default action of SIGXFSZ would end the process.
TEST_F(Process, A13_BehindTheFileSizeLimitIsAnErrorNotASignal) {
  EXPECT_EQ(tests::in_child([&] {
              const rlimit limit{2 * mib, 2 * mib};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              for (const std::uint64_t size : {std::uint64_t{1000}, 100'000UL, 4 * mib}) {
                auto file = open(folder.path("out"), "w");
                CallOptions options;
                options.offset = 2 * mib - 500;
                const auto receipt = file.write_from({bytes.data(), size}, options);
                if (receipt || receipt.error().code != EFBIG) return 1;
                if (receipt.error().kind != ErrorKind::no_space) return 2;
                if (receipt.error().path != folder.path("out")) return 3;
                options.offset = 0;
                if (!file.write_from({bytes.data(), 1000}, options)) return 4;
              }
              return 0;
            }),
            0);
}

TEST_F(Process, A13_AFullFileSystemIsAnErrorThere) {
  const int code = tests::in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder.path("").c_str(), "tmpfs", 0, "size=2m") != 0) {
      return not_allowed_here;
    }
    for (const std::uint64_t size : {std::uint64_t{200'000}, 4 * mib}) {
      auto file = open(folder.path("out"), "w");
      CallOptions options;
      options.offset = 2 * mib - 100'000;
      if (!file.write_from({bytes.data(), options.offset})) return 5;
      const auto receipt = file.write_from({bytes.data(), size}, options);
      if (receipt || receipt.error().code != ENOSPC) return 1;
      if (receipt.error().kind != ErrorKind::no_space) return 2;
      if (!receipt.error().offset || *receipt.error().offset < options.offset) return 3;
      options.policy = Policy::direct;  // O_DIRECT means nothing on tmpfs: refused, with the reason
      const auto refused = file.write_from({bytes.data(), mib}, options);
      if (refused || refused.error().kind != ErrorKind::route_refused) return 4;
    }
    return 0;
  });
  if (code == not_allowed_here) GTEST_SKIP() << "no mounts allowed here";
  EXPECT_EQ(code, 0);
}

// Answers `code` to the given system calls from now on, in this process.
bool refuse(const std::vector<unsigned>& calls, unsigned code) {
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const auto call : calls) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

struct Filter {
  std::vector<unsigned> calls;
  unsigned code;
};

TEST_F(Process, H_UnderASeccompFilterTheBytesAreTheSame) {
  const std::vector<Filter> filters = {
      {{SYS_statx, SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register}, EPERM},
      {{SYS_statx, SYS_io_uring_setup}, ENOSYS},
      {{SYS_io_uring_enter}, EPERM},
      {{SYS_io_uring_register}, EPERM},
      {{SYS_memfd_create}, EPERM},
      {{SYS_memfd_create, SYS_statfs, SYS_fstatfs, SYS_readlink, SYS_readlinkat}, EACCES},
      {{SYS_fallocate, SYS_prlimit64, SYS_madvise}, EPERM},
  };
  for (std::size_t i = 0; i < filters.size(); ++i) {
    EXPECT_EQ(tests::in_child([&] {
                const auto context = std::move(Context::create()).value();
                if (!refuse(filters[i].calls, filters[i].code)) return not_allowed_here;
                const auto file = open(path, "r", context);
                if (!reads_right(file) || !reads_right(file, Cache::bypass)) return 1;
                auto out = open(folder.path("out"), "w", context);
                CallOptions options;
                options.cache = Cache::bypass;
                if (!out.write_from({bytes.data(), bytes.size()}, options)) return 2;
                return folder.read("out") == bytes ? 0 : 3;
              }),
              0)
        << "filter " << i;
  }
}

TEST_F(Process, H_HugePagesAreSourceAndTarget) {
  constexpr std::size_t size = 16 * mib;
  for (const int flags : {MAP_HUGETLB, 0}) {
    void* mapped =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (mapped == MAP_FAILED) continue;  // no hugetlbfs pages reserved here
    ::madvise(mapped, size, MADV_HUGEPAGE);
    for (const auto cache : {Cache::automatic, Cache::bypass}) {
      std::memset(mapped, 'x', size);
      CallOptions options;
      options.cache = cache;
      const auto context = std::move(Context::create()).value();
      ASSERT_TRUE(open(path, "r", context).read_into({mapped, size}, options));
      EXPECT_EQ(std::memcmp(mapped, bytes.data(), size), 0);
      auto out = open(folder.path("out"), "w", context);
      ASSERT_TRUE(out.write_from({mapped, size}, options));
      EXPECT_EQ(folder.read("out"), std::vector<char>(bytes.begin(), bytes.begin() + size));
    }
    ::munmap(mapped, size);
  }
}

TEST_F(Process, AForkWithReadsUnderWayLeavesTheChildFree) {
  tests::BadKernel kernel;
  std::atomic<bool> open_gate{false};
  kernel.on_move = [&](tests::Attempt&) -> std::optional<std::int64_t> {
    while (!open_gate.load()) std::this_thread::yield();
    return std::nullopt;
  };
  const auto context = kernel.context();
  auto file = open(path, "r", context);
  std::vector<char> memory(bytes.size());
  auto job = std::move(file.submit_read({memory.data(), memory.size()})).value();
  while (kernel.in_flight.load() == 0) std::this_thread::yield();
  EXPECT_EQ(tests::in_child([&] {
              kernel.on_move = nullptr;
              if (job.result().ok() || job.result().error().kind != ErrorKind::forked) return 1;
              if (!job.done() || job.cancel()) return 2;
              bool told = false;
              job.on_done([&] { told = true; });
              if (!told) return 3;
              if (!reads_right(file)) return 4;
              auto again = file.submit_read({memory.data(), memory.size()});
              if (!again || !again->result() || memory != bytes) return 5;
              if (!file.close()) return 6;
              return File::open(path, "r", {}, context).ok() ? 0 : 7;
            }),
            0);
  EXPECT_FALSE(job.done());
  open_gate = true;
  EXPECT_TRUE(job.result());
  EXPECT_EQ(memory, bytes);
}

TEST_F(Process, AChildOfAChildReadsToo) {
  const auto context = std::move(Context::create()).value();
  const auto file = open(path, "r", context);
  EXPECT_TRUE(reads_right(file));
  EXPECT_EQ(tests::in_child([&] {
              if (!reads_right(file)) return 1;
              return tests::in_child([&] { return reads_right(file) ? 0 : 2; });
            }),
            0);
}

TEST_F(Process, AnExceptionMeanwhileDrainsFirst) {
  tests::BadKernel kernel;
  const auto context = kernel.context();
  auto memory = std::make_shared<std::vector<char>>(bytes.size());
  try {
    auto file = open(path, "r", context);
    auto job = std::move(file.submit_read({memory->data(), memory->size()}, {}, memory)).value();
    throw std::runtime_error("the caller's");
  } catch (const std::runtime_error&) {
    EXPECT_EQ(kernel.in_flight.load(), 0);  // closing the file waited
  }
  EXPECT_EQ(*memory, bytes);
}

}  // namespace
}  // namespace straightway
