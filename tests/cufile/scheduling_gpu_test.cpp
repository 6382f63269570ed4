// The knobs that decide how a request is cut and queued: what they do to parts and counters, and
// what they do not. Through libcufile.so.0, on the simulated GPU.

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "cufile/published_reader.hpp"
#include "tests/cufile/library.hpp"

namespace straightway::cufile {
namespace {

constexpr std::size_t MiB = 1 << 20;

struct Counted {
  std::uint64_t parts, posix, pooled;
  bool operator==(const Counted&) const = default;
};
void PrintTo(const Counted& counted, std::ostream* out) {
  *out << counted.parts << " parts, " << counted.posix << " posix, " << counted.pooled << " pooled";
}

class Scheduling : public CufileGpuTest {
 protected:
  void configure(const std::string& execution, const std::string& properties = "") {
    write_config("{\"profile\": {\"cufile_stats\": 3}, \"execution\": {" + execution +
                 "}, \"properties\": {" + properties + "}}");
    ASSERT_EQ(library.cuFileDriverOpen().code, 0);
  }
  // A registered buffer, so that the parts are those of the documented example.
  char* buffer(std::size_t size) {
    auto* device = static_cast<char*>(device_memory(size));
    EXPECT_EQ(library.cuFileBufRegister(device, size, 0).code, 0);
    return device;
  }
  void* file(std::size_t size) {
    const std::string path = folder.write("data", tests::pattern(4096));
    EXPECT_EQ(::truncate(path.c_str(), static_cast<off_t>(size)), 0);
    return register_fd(open_file(path));
  }
  Counted counted(std::size_t device = 0) const {
    const auto counters = read_published(::getpid());
    if (!counters) return {};
    const abi::PerGpu& gpu = (*counters)->gpus[device];
    return {gpu.read.n, gpu.read.posix, (*counters)->pooled_parts[device]};
  }
  Counted read(std::size_t size) {
    EXPECT_EQ(library.cuFileRead(file(size), buffer(size), size, 0, 0), static_cast<ssize_t>(size));
    return counted();
  }
};

TEST_F(Scheduling, TheShippedValuesCut16MiBInTwo) {
  configure("");
  EXPECT_EQ(read(16 * MiB), (Counted{2, 2, 1}));
}

TEST_F(Scheduling, ParallelismAndThresholdDecideTheParts) {
  configure(R"("min_io_threshold_size_kb": 1024, "max_request_parallelism": 8)");
  EXPECT_EQ(read(64 * MiB), (Counted{8, 8, 7}));
}

TEST_F(Scheduling, MoreThreadsMakeNoMoreParts) {
  configure(R"("min_io_threshold_size_kb": 1024, "max_io_threads": 16)");
  EXPECT_EQ(read(64 * MiB), (Counted{4, 4, 3}));
}

TEST_F(Scheduling, WithoutThreadsTheCallerRunsTheWhole) {
  configure(R"("min_io_threshold_size_kb": 1024, "max_io_threads": 0)");
  EXPECT_EQ(read(64 * MiB), (Counted{1, 1, 0}));
}

TEST_F(Scheduling, WithoutParallelIoTheCallerRunsTheWhole) {
  configure(R"("min_io_threshold_size_kb": 1024, "parallel_io": false)");
  EXPECT_EQ(read(64 * MiB), (Counted{1, 1, 0}));
}

TEST_F(Scheduling, WithoutParallelismTheCallerRunsTheWhole) {
  configure(R"("min_io_threshold_size_kb": 1024, "max_request_parallelism": 0)");
  EXPECT_EQ(read(64 * MiB), (Counted{1, 1, 0}));
}

// A queue of one and a pool of one small slab: nobody waits for a place, and nothing is lost.
TEST_F(Scheduling, AShortQueueAndSmallSlabsMakeNobodyWait) {
  configure(R"("max_io_queue_depth": 1, "min_io_threshold_size_kb": 64)",
            R"("posix_pool_slab_size_kb": [4], "posix_pool_slab_count": [1])");
  void* token = file(4 * MiB);
  std::vector<std::thread> threads;
  threads.reserve(8);
  std::atomic<int> whole{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, device = buffer(4 * MiB)] {
      for (int round = 0; round < 4; ++round) {
        whole += library.cuFileRead(token, device, 4 * MiB, 0, 0) == 4 * MiB ? 1 : 0;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(whole.load(), 32);
  EXPECT_EQ(counted(), (Counted{128, 128, 96}));
}

TEST_F(Scheduling, PollingChangesNoPart) {
  configure("", R"("use_poll_mode": true, "poll_mode_max_size_kb": 1024)");
  EXPECT_EQ(read(MiB), (Counted{1, 1, 0}));
  abi::Properties properties{};
  ASSERT_EQ(library.cuFileDriverGetProperties(&properties).code, 0);
  EXPECT_EQ(properties.poll_threshold_kb, 1024U);
  EXPECT_EQ(properties.control_flags & 1U, 1U);
}

TEST_F(Scheduling, EachGpuCountsItsOwn) {
  configure("");
  void* token = file(16 * MiB);
  auto* second = reinterpret_cast<void*>(fake.allocate(1, 16 * MiB));
  ASSERT_EQ(library.cuFileBufRegister(second, 16 * MiB, 0).code, 0);
  ASSERT_EQ(library.cuFileRead(token, second, 16 * MiB, 0, 0), 16 * MiB);
  ASSERT_EQ(library.cuFileRead(token, buffer(MiB), MiB, 0, 0), MiB);
  EXPECT_EQ(counted(0), (Counted{1, 1, 0}));
  EXPECT_EQ(counted(1), (Counted{2, 2, 1}));
}

TEST_F(Scheduling, WhatChangesNothingIsSaid) {
  write_config("{\"logging\": {\"dir\": \"" + folder.path("") + R"(", "level": "WARN"},
    "execution": {"max_io_queue_depth": 64}, "propertes": {},
    "properties": {"use_poll_mode": true, "posix_pool_slab_count": [1, 2, 3]}})");
  ASSERT_EQ(library.cuFileDriverOpen().code, 0);
  const auto bytes = folder.read("cufile.log");
  const std::string log(bytes.begin(), bytes.end());
  EXPECT_THAT(log, testing::HasSubstr("execution.max_io_queue_depth = 64 (file) takes no effect"));
  EXPECT_THAT(log, testing::HasSubstr("properties.use_poll_mode = true (file) takes no effect"));
  EXPECT_THAT(log, testing::HasSubstr("posix_pool_slab_count = [1,2,3] (file) takes no effect"));
  EXPECT_THAT(log, testing::HasSubstr("propertes: takes no effect: no key of this name is known "
                                      "here; did you mean properties?"));
}

// A child's calls are not its parent's.
TEST_F(Scheduling, AForkedChildMovesNoCounterOfItsParent) {
  configure("");
  const std::string path = folder.write("data", tests::pattern(4096));
  register_fd(open_file(path));
  const auto before = read_published(::getpid());
  ASSERT_TRUE(before);
  const pid_t child = ::fork();
  if (child == 0) {
    static char host[4096];
    register_fd(open_file(path));
    library.cuFileBufRegister(host, sizeof(host), 0);
    library.cuFileBufDeregister(host);
    library.cuFileStatsReset();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const auto after = read_published(::getpid());
  ASSERT_TRUE(after);
  EXPECT_EQ(std::memcmp(&(*before)->level1, &(*after)->level1, sizeof(abi::Level1)), 0);
}

}  // namespace
}  // namespace straightway::cufile
