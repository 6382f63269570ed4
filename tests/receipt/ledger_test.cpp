#include "receipt/ledger.hpp"

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <thread>

#include "receipt/ledger_layout.hpp"
#include "tests/receipt/child.hpp"

namespace straightway::receipt {
namespace {

using receipt_tests::Child;
using receipt_tests::must;

Receipt small_read() {
  Receipt receipt;
  receipt.wanted_bytes = 4096;
  receipt.moved_bytes = 4096;
  receipt.routes[index(Route::buffered)].bytes = 4096;
  receipt.routes[index(Route::buffered)].segments = 1;
  receipt.times = {1000, 1000, 0, 4000};
  return receipt;
}

Receipt large_write() {
  Receipt receipt;
  receipt.direction = Direction::write;
  receipt.wanted_bytes = std::uint64_t{5} << 30;
  receipt.moved_bytes = std::uint64_t{5} << 30;
  receipt.routes[index(Route::staged)] = {std::uint64_t{5} << 30, 1280, Reason::device_memory, {}};
  receipt.times = {1'000'000, 1'000'000, 0, 101'000'000};
  receipt.retries = 3;
  receipt.fallbacks = 2;
  receipt.layer = {8, 1, 2, 5};
  return receipt;
}

std::unique_ptr<Ledger> make_ledger() { return must(Ledger::create()); }

// The descriptors of this process that are ledgers.
std::vector<int> ledger_descriptors() {
  std::vector<int> found;
  DIR* directory = ::opendir("/proc/self/fd");
  while (const dirent* entry = ::readdir(directory)) {
    char link[128] = {};
    const ssize_t size = ::readlinkat(::dirfd(directory), entry->d_name, link, sizeof(link) - 1);
    if (size > 0 && std::string_view(link).starts_with(ledger_link_prefix)) {
      found.push_back(std::atoi(entry->d_name));
    }
  }
  ::closedir(directory);
  return found;
}

// Every test reads a process of its own: whatever ledgers this one holds stay out of its figures.
TEST(Ledger, CountsOfEightThreadsAreExactInAnotherProcess) {
  Child child([](Child& self) {
    const auto ledger = make_ledger();
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&ledger] {
        for (int n = 0; n < 10'000; ++n) ledger->add(small_read());
        ledger->add(large_write());
        ledger->add_error(Direction::write);
      });
    }
    threads.clear();
    self.tell();
    self.listen();
    return 0;
  });
  child.listen();
  const LedgerSnapshot seen = must(read_ledger(child.pid()));
  child.tell();
  EXPECT_EQ(seen.pid, child.pid());
  EXPECT_EQ(seen.bytes[index(Route::buffered)][0], 80'000u * 4096);
  EXPECT_EQ(seen.segments[index(Route::buffered)][0], 80'000u);
  EXPECT_EQ(seen.bytes[index(Route::buffered)][1], 0u);
  EXPECT_EQ(seen.bytes[index(Route::staged)][1], std::uint64_t{40} << 30);
  EXPECT_EQ(seen.segments[index(Route::staged)][1], 8u * 1280);
  EXPECT_EQ(seen.sizes[1][0].requests, 80'000u);
  EXPECT_EQ(seen.sizes[1][0].bytes, 80'000u * 4096);
  EXPECT_EQ(seen.sizes[1][0].time_ns, 80'000u * 3000);
  EXPECT_EQ(seen.sizes[6][1].requests, 8u);
  EXPECT_EQ(seen.latencies[2][0], 80'000u);  // 3 us: below 4
  EXPECT_EQ(seen.latencies[17][1], 8u);      // 100 ms: below 131,072 us
  EXPECT_EQ(seen.errors[0], 0u);
  EXPECT_EQ(seen.errors[1], 8u);
  EXPECT_EQ(seen.retries, 24u);
  EXPECT_EQ(seen.fallbacks, 16u);
  EXPECT_EQ(seen.layer, (LayerCounters{64, 8, 16, 40}));
}

TEST(Ledger, ParentIsReadByItsChild) {
  Child parent([](Child&) {
    const auto ledger = make_ledger();
    ledger->add(small_read());
    const pid_t pid = ::getpid();
    Child reader([pid](Child&) {
      const Result<LedgerSnapshot> seen = read_ledger(pid);
      return seen && seen->sizes[1][0].requests == 1 ? 0 : 1;
    });
    return reader.wait();
  });
  EXPECT_EQ(parent.wait(), 0);
}

TEST(Ledger, AForkedChildAddsNothingAndHasNone) {
  Child parent([](Child&) {
    const auto ledger = make_ledger();
    ledger->add(small_read());
    Child forked([&ledger](Child&) {
      for (int i = 0; i < 100; ++i) ledger->add(small_read());
      ledger->add_error(Direction::read);
      const Result<LedgerSnapshot> own = read_ledger(::getpid());
      return !own && own.error().kind == ErrorKind::not_found ? 0 : 1;
    });
    if (forked.wait() != 0) return 1;
    ledger->add(small_read());
    const LedgerSnapshot seen = must(read_ledger(::getpid()));
    return seen.sizes[1][0].requests == 2 && seen.errors[0] == 0 ? 0 : 2;
  });
  EXPECT_EQ(parent.wait(), 0);
}

TEST(Ledger, AForkedChildMakesItsOwn) {
  Child parent([](Child&) {
    const auto ledger = make_ledger();
    for (int i = 0; i < 5; ++i) ledger->add(small_read());
    Child forked([](Child&) {
      const auto own = make_ledger();
      own->add(small_read());
      return must(read_ledger(::getpid())).sizes[1][0].requests == 1 ? 0 : 1;
    });
    return forked.wait();
  });
  EXPECT_EQ(parent.wait(), 0);
}

TEST(Ledger, TwoOfOneProcessAreAddedUp) {
  Child child([](Child&) {
    const auto one = make_ledger();
    const auto other = make_ledger();
    one->add(small_read());
    other->add(small_read());
    return must(read_ledger(::getpid())).sizes[1][0].requests == 2 ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(Ledger, StandardDescriptorsAreNotTaken) {
  Child child([](Child&) {
    for (int fd = 0; fd <= 2; ++fd) ::close(fd);
    const auto ledger = make_ledger();
    for (int fd = 0; fd <= 2; ++fd) {
      if (::fcntl(fd, F_GETFD) != -1) return 1;
    }
    ledger->add(small_read());
    return read_ledger(::getpid()).ok() ? 0 : 2;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(Ledger, NobodyElseCanWriteOrCutIt) {
  Child child([](Child&) {
    const auto ledger = make_ledger();
    const std::vector<int> inherited = ledger_descriptors();
    const int fd = inherited.back();
    if ((::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) return 1;
    const int again = ::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDWR);
    const int target = again >= 0 ? again : fd;  // root may open it, but not write
    if (::pwrite(target, "x", 1, 0) != -1) return 2;
    if (::ftruncate(target, 0) != -1) return 3;
    if (::ftruncate(target, 1 << 20) != -1) return 4;
    void* mapped = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, target, 0);
    if (mapped != MAP_FAILED) return 5;
    ledger->add(small_read());  // while the writer's own mapping still works
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(Ledger, DescriptorGoesWithIt) {
  Child child([](Child&) {
    const std::size_t before = ledger_descriptors().size();
    make_ledger();
    return ledger_descriptors().size() == before ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(Ledger, NoDescriptorLeftIsAnErrorThatSaysSo) {
  Child child([](Child&) {
    const rlimit none{3, 3};
    ::setrlimit(RLIMIT_NOFILE, &none);
    const Result<std::unique_ptr<Ledger>> ledger = Ledger::create();
    return !ledger && ledger.error().kind == ErrorKind::too_many_files ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
}

// Stopped or killed at any instant, a writer leaves at most one transfer of each thread half
// counted.
TEST(Ledger, AStoppedAndAKilledWriterDoNoHarm) {
  constexpr std::uint64_t thread_count = 3;
  Child writer([](Child& self) {
    const auto ledger = make_ledger();
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < thread_count; ++i) {
      threads.emplace_back([&ledger](const std::stop_token& stop) {
        while (!stop.stop_requested()) ledger->add(small_read());
      });
    }
    self.tell();
    self.listen();
    return 0;
  });
  writer.listen();
  writer.kill(SIGSTOP);
  writer.wait_stopped();
  const LedgerSnapshot seen = must(read_ledger(writer.pid()));
  const std::uint64_t requests = seen.sizes[1][0].requests;
  EXPECT_LE(seen.latencies[2][0], requests);
  EXPECT_GE(seen.latencies[2][0] + thread_count, requests);
  EXPECT_GE(seen.segments[index(Route::buffered)][0], requests);
  EXPECT_LE(seen.segments[index(Route::buffered)][0], requests + thread_count);
  const pid_t pid = writer.pid();
  writer.kill(SIGKILL);
  EXPECT_EQ(writer.wait(), -SIGKILL);
  EXPECT_EQ(read_ledger(pid).error().kind, ErrorKind::not_found);
}

TEST(Ledger, IsFoundWhileItsProcessLives) {
  Child child([](Child& self) {
    const auto ledger = make_ledger();
    self.tell();
    self.listen();
    return 0;
  });
  child.listen();
  const pid_t pid = child.pid();
  EXPECT_THAT(find_ledgers(), testing::Contains(pid));
  child.tell();
  child.wait();
  EXPECT_THAT(find_ledgers(), testing::Not(testing::Contains(pid)));
}

TEST(Ledger, ClassesBeginWhereTheySay) {
  EXPECT_EQ(size_class(0), 0u);
  EXPECT_EQ(size_class(4095), 0u);
  EXPECT_EQ(size_class(4096), 1u);
  EXPECT_EQ(size_class(65535), 1u);
  EXPECT_EQ(size_class(65536), 2u);
  EXPECT_EQ(size_class((std::uint64_t{64} << 30) - 1), 6u);
  EXPECT_EQ(size_class(std::uint64_t{64} << 30), 7u);
  EXPECT_EQ(size_class(UINT64_MAX), 7u);
  EXPECT_EQ(latency_class(999), 0u);
  EXPECT_EQ(latency_class(1000), 1u);
  EXPECT_EQ(latency_class(1999), 1u);
  EXPECT_EQ(latency_class(2000), 2u);
  EXPECT_EQ(latency_class(UINT64_MAX), latency_class_count - 1);
  for (std::size_t i = 0; i + 1 < size_class_count; ++i) {
    EXPECT_EQ(size_class(size_class_limit_bytes(i) - 1), i);
    EXPECT_EQ(size_class(size_class_limit_bytes(i)), i + 1);
  }
}

}  // namespace
}  // namespace straightway::receipt
