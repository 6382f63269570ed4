#include "straightway/peer.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <vector>

#include "api/engine.hpp"
#include "api/peer_ways.hpp"
#include "os/descriptor.hpp"
#include "os/file_stamp.hpp"
#include "tests/os/temp_tree.hpp"
#include "tests/temp_file.hpp"

namespace straightway {
namespace {

using testing::HasSubstr;

constexpr const char* device = "0000:03:00.0";
constexpr std::size_t mib = 1 << 20;

// What becomes of storage DMA between the drive and the memory that poses as a device's.
struct FakeDevice {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::atomic<int> moves{0};  // O_DIRECT calls for its memory
  std::int64_t refusal = 0;   // -errno
  bool loses = false;         // says it moved, and did not
};
FakeDevice* fake = nullptr;

bool is_direct(int fd) { return (::fcntl(fd, F_GETFL) & O_DIRECT) != 0; }

std::optional<std::int64_t> answer(int fd, const void* memory, std::size_t size) {
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  if (!is_direct(fd) || address < fake->begin || address >= fake->end) return {};
  ++fake->moves;
  if (fake->refusal != 0) return fake->refusal;
  if (fake->loses) return static_cast<std::int64_t>(size);
  return {};
}

const os::Syscalls& faked_calls() {
  static const os::Syscalls calls = [] {
    os::Syscalls made = os::kernel();
    made.pread = [](int fd, void* to, std::size_t size, std::uint64_t offset) {
      const auto faked = answer(fd, to, size);
      return faked ? *faked : os::kernel().pread(fd, to, size, offset);
    };
    made.pwrite = [](int fd, const void* from, std::size_t size, std::uint64_t offset) {
      const auto faked = answer(fd, from, size);
      return faked ? *faked : os::kernel().pwrite(fd, from, size, offset);
    };
    return made;
  }();
  return calls;
}

// A machine of fake facts, where the temporary file lies on ext4 on an NVMe drive beside a device
// that publishes its memory; ordinary memory poses as that.
class PeerTest : public testing::Test {
 protected:
  static constexpr std::size_t memory_bytes = 4 * mib;

  PeerTest() : bytes(tests::pattern(8 * mib)) {
    fake = &device_;
    path = tree.write("file", {bytes.data(), bytes.size()});
    const std::string below = "../../devices/pci0000:00/0000:00:03.0/0000:01:00.0/";
    const std::string disk = below + "0000:02:01.0/0000:04:00.0/nvme/nvme0/nvme0n1";
    struct stat status{};
    ::stat(path.c_str(), &status);
    const auto number =
        std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
    tree.write("proc/self/mountinfo", "9001 1 " + number + " / / rw - ext4 /dev/nvme0n1 rw\n");
    tree.write("proc/sys/kernel/osrelease", "7.3.4\n");
    tree.folder("sys/dev/block/" + disk);
    tree.link("sys/dev/block/" + number, disk);
    tree.folder("sys/devices/pci0000:00/0000:00:03.0/0000:01:00.0/0000:03:00.0/p2pmem");
    tree.link(std::string("sys/bus/pci/devices/") + device, "../" + below + device);
    memory = static_cast<char*>(
        ::mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    device_.begin = reinterpret_cast<std::uint64_t>(memory);
    device_.end = device_.begin + memory_bytes;
  }
  ~PeerTest() override {
    ::munmap(memory, memory_bytes);
    fake = nullptr;
  }

  void SetUp() override {
    context = Context::around(Engine::create({}, faked_calls(), tree.root()).value());
    peer = PeerMemory::adopt({memory, memory_bytes}, device, context).value();
    file = File::open(path, "r+", {}, context).value();
    if (file.facts()->direct_offset_align_bytes == 0) GTEST_SKIP() << "no O_DIRECT in TMPDIR";
  }
  Result<Receipt> read(std::size_t size, const CallOptions& options = {}) {
    return file.read_into({memory, size}, options);
  }
  static std::uint64_t direct_bytes(const Receipt& receipt) {
    return receipt.routes[index(Route::p2pdma)].bytes;
  }
  bool arrived(std::size_t size, std::size_t offset = 0) const {
    return std::memcmp(memory, bytes.data() + offset, size) == 0;
  }
  static CallOptions policy(Policy policy) {
    CallOptions options;
    options.policy = policy;
    return options;
  }

  os::TempTree tree;
  std::vector<char> bytes;
  std::string path;
  char* memory = nullptr;
  FakeDevice device_;
  std::shared_ptr<Context> context;
  PeerMemory peer;
  File file;
};

TEST_F(PeerTest, BytesGoDirectAndTheReceiptSaysSo) {
  for (const auto size : {std::size_t{4096}, std::size_t{3 * mib}}) {
    std::memset(memory, 0, memory_bytes);
    const auto receipt = read(size).value();
    EXPECT_EQ(direct_bytes(receipt), size);
    EXPECT_EQ(receipt.memory.space, SpaceKind::peer);
    EXPECT_EQ(receipt.routes[index(Route::p2pdma)].reason, Reason::peer_direct);
    EXPECT_THAT(receipt.to_text(), HasSubstr("memory of PCI device 0000:03:00.0"));
    EXPECT_TRUE(arrived(size));
  }
}

TEST_F(PeerTest, PointersOutsideAreHostMemory) {
  std::vector<char> host(4096);
  const auto receipt = file.read_into({host.data(), host.size()}).value();
  EXPECT_EQ(receipt.memory.space, SpaceKind::host);
  const auto error = file.read_into({memory + memory_bytes - 100, 4096}).error();
  EXPECT_EQ(error.kind, ErrorKind::invalid_argument);
  EXPECT_THAT(error.message(), HasSubstr("only 100 bytes are there"));
  peer = {};
  EXPECT_EQ(read(4096).value().memory.space, SpaceKind::host);
}

TEST_F(PeerTest, ExplainNeverTries) {
  const auto plan = file.explain(Direction::read, {memory, mib}).value();
  EXPECT_EQ(plan.runs[0].reason, Reason::peer_untried);
  const auto ahead = file.explain_peer(Direction::write, device, mib).value();
  EXPECT_EQ(ahead.runs[0].reason, Reason::peer_untried);
  EXPECT_EQ(file.explain_peer(Direction::read, "0000:09:00.0", mib).value().refused[1],
            Reason::not_published);
  EXPECT_EQ(device_.moves, 0);
}

TEST_F(PeerTest, OneTrialForEachDirection) {
  device_.refusal = -EREMOTEIO;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(read(mib));
  EXPECT_EQ(device_.moves, 1);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(file.write_from({memory, mib}));
  EXPECT_EQ(device_.moves, 2);
  auto second = File::open(path, "r", {}, context).value();  // the same storage
  ASSERT_TRUE(second.read_into({memory, mib}));
  EXPECT_EQ(device_.moves, 2);
}

TEST_F(PeerTest, E12_ARefusedTrialFallsBackWithTheReason) {
  for (const int code : {EREMOTEIO, EINVAL, EFAULT, EOPNOTSUPP}) {
    SetUp();
    device_.refusal = -code;
    std::memset(memory, 0, memory_bytes);
    const auto receipt = read(3 * mib).value();
    EXPECT_EQ(direct_bytes(receipt), 0U);
    EXPECT_EQ(receipt.routes[index(Route::buffered)].bytes, 3 * mib);
    EXPECT_EQ(receipt.refused[index(Route::p2pdma)], Reason::peer_refused);
    EXPECT_THAT(receipt.to_text(), HasSubstr(::strerrorname_np(code)));
    EXPECT_TRUE(arrived(3 * mib));
    peer = {};
  }
}

// The drive says ok, and no bytes come.
TEST_F(PeerTest, BytesThatNeverArriveAreNoticed) {
  device_.loses = true;
  std::memset(memory, 0x55, memory_bytes);
  const auto receipt = read(mib).value();
  EXPECT_EQ(direct_bytes(receipt), 0U);
  EXPECT_EQ(receipt.refused[index(Route::p2pdma)], Reason::peer_data_lost);
  EXPECT_TRUE(arrived(mib));
}

TEST_F(PeerTest, D_DirectFailsWithTheReasonAndMovesNothing) {
  for (const bool loses : {true, false}) {
    SetUp();
    device_.loses = loses;
    device_.refusal = loses ? 0 : -EREMOTEIO;
    std::memset(memory, 0x55, memory_bytes);
    const std::vector<char> before(memory, memory + memory_bytes);
    const auto error = read(mib, policy(Policy::direct)).error();
    EXPECT_EQ(error.kind, ErrorKind::route_refused);
    EXPECT_THAT(error.message(), HasSubstr(loses ? "were not in the memory" : "EREMOTEIO"));
    EXPECT_EQ(std::memcmp(memory, before.data(), memory_bytes), 0);
    auto job = file.submit_read({memory, mib}, policy(Policy::direct));  // E10: the same
    EXPECT_EQ(job.error().kind, ErrorKind::route_refused);
    const std::vector<RangeRequest> ranges = {{0, 4096, {memory, 4096}},
                                              {mib, 4096, {memory + 4096, 4096}}};
    EXPECT_EQ(file.read_ranges(ranges, policy(Policy::direct)).error().kind,
              ErrorKind::route_refused);
    EXPECT_EQ(std::memcmp(memory, before.data(), memory_bytes), 0);
    peer = {};
  }
}

TEST_F(PeerTest, E10_JobsAndManyRangesGoTheSameWay) {
  const auto job = file.submit_read({memory, mib}).value();
  EXPECT_EQ(direct_bytes(job.result().value()), mib);
  const std::vector<RangeRequest> ranges = {{0, mib, {memory, mib}},
                                            {4 * mib, mib, {memory + mib, mib}}};
  EXPECT_EQ(direct_bytes(file.read_ranges(ranges).value()), 2 * mib);
  EXPECT_EQ(std::memcmp(memory + mib, bytes.data() + 4 * mib, mib), 0);
}

TEST_F(PeerTest, WritesGoDirectAfterATrialOfTheirOwn) {
  const auto other = tests::pattern(mib, 9);
  std::memcpy(memory, other.data(), mib);
  const auto receipt = file.write_from({memory, mib}).value();
  EXPECT_EQ(direct_bytes(receipt), mib);
  std::vector<char> found(mib);
  ASSERT_TRUE(file.read_into({found.data(), mib}));
  EXPECT_EQ(found, other);
}

TEST_F(PeerTest, AWriteThatIsLostLeavesTheFileAsItWas) {
  device_.loses = true;
  for (const bool same : {false, true}) {  // what is there already must not pass for written
    SetUp();
    same ? std::memcpy(memory, bytes.data(), mib) : std::memset(memory, 0x55, mib);
    const auto error = file.write_from({memory, mib}, policy(Policy::direct)).error();
    EXPECT_EQ(error.kind, ErrorKind::route_refused) << same;
    std::vector<char> found(mib);
    ASSERT_TRUE(file.read_into({found.data(), mib}));
    EXPECT_EQ(std::memcmp(found.data(), bytes.data(), mib), 0);
    peer = {};
  }
}

TEST_F(PeerTest, AWriteThatCannotBeTriedIsNotDirect) {
  CallOptions behind;
  behind.offset = 8 * mib;
  const auto receipt = file.write_from({memory, mib}, behind).value();
  EXPECT_EQ(direct_bytes(receipt), 0U);
  EXPECT_EQ(receipt.refused[index(Route::p2pdma)], Reason::peer_not_tried);
  ASSERT_TRUE(file.write_from({memory, mib}));  // tried here; known from now on
  behind.offset = 9 * mib;
  EXPECT_EQ(direct_bytes(file.write_from({memory, mib}, behind).value()), mib);
}

// The CPU fills holes with zeros, under O_DIRECT too: nothing there is direct.
TEST_F(PeerTest, HolesAreNotDirect) {
  const auto sparse = tree.write("sparse", "");
  ASSERT_EQ(::truncate(sparse.c_str(), 4 * mib), 0);
  auto holes = File::open(sparse, "r", {}, context).value();
  const auto receipt = holes.read_into({memory, mib}).value();
  EXPECT_EQ(receipt.moved_bytes, mib);
  EXPECT_EQ(direct_bytes(receipt), 0U);
  EXPECT_EQ(receipt.refused[index(Route::p2pdma)], Reason::peer_holes);
  EXPECT_EQ(holes.read_into({memory, mib}, policy(Policy::direct)).error().kind,
            ErrorKind::route_refused);
  EXPECT_EQ(device_.moves, 0);
  EXPECT_EQ(direct_bytes(read(mib).value()), mib);  // another file of the same storage
}

// So are preallocated blocks, whose zeros somebody may have read into the page cache.
TEST_F(PeerTest, BlocksNeverWrittenAreNotDirect) {
  const auto name = tree.write("reserved", std::string(mib, 'r'));
  const os::Descriptor fd(::open(name.c_str(), O_RDWR | O_CLOEXEC));
  if (::fallocate(fd.get(), 0, mib, mib) != 0) GTEST_SKIP() << "TMPDIR does not preallocate";
  auto reserved = File::open(name, "r", {}, context).value();
  std::vector<char> zeros(2 * mib);
  ASSERT_EQ(::pread(fd.get(), zeros.data(), zeros.size(), 0), static_cast<ssize_t>(zeros.size()));
  const auto receipt = reserved.read_into({memory, 2 * mib}).value();
  EXPECT_EQ(direct_bytes(receipt), 0U);
  EXPECT_EQ(receipt.refused[index(Route::p2pdma)], Reason::peer_holes);
}

// An empty range in host memory looks at the file before, and needs less of it.
TEST_F(PeerTest, HolesAreFoundBehindAnEmptyRange) {
  const auto sparse = tree.write("sparse", "");
  ASSERT_EQ(::truncate(sparse.c_str(), 4 * mib), 0);
  auto holes = File::open(sparse, "r", {}, context).value();
  char nothing = 0;
  const std::vector<RangeRequest> ranges{{0, 0, {&nothing, 0}}, {0, mib, {memory, mib}}};
  EXPECT_EQ(direct_bytes(file.read_ranges(ranges, policy(Policy::direct)).value()), mib);
  const auto refused = holes.read_ranges(ranges, policy(Policy::direct));
  ASSERT_FALSE(refused) << "called direct: " << direct_bytes(*refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::route_refused);
}

// What has none is known as long as the file's stamp stays.
TEST_F(PeerTest, HolesAreLookedForAgainWhenTheFileChanged) {
  const auto name = tree.write("filled", std::string(2 * mib, 'f'));
  const os::Descriptor fd(::open(name.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::fsync(fd.get()), 0);
  const auto before = os::read_settled_stamp(fd.get()).value();
  PeerWays ways("");
  EXPECT_FALSE(ways.has_holes(before, fd.get(), {mib, mib}));
  ASSERT_EQ(::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2 * mib), 0);
  EXPECT_FALSE(ways.has_holes(before, fd.get(), {mib, 4096})) << "it was not looked at again";
  EXPECT_TRUE(ways.has_holes(before, fd.get(), {0, mib})) << "of this nothing was known";
  const auto after = os::read_settled_stamp(fd.get()).value();
  EXPECT_TRUE(ways.has_holes(after, fd.get(), {mib, mib}));
}

// What cannot be asked may have some.
TEST_F(PeerTest, AFileThatDoesNotTellMayHaveHoles) {
  PeerWays ways("");
  EXPECT_TRUE(ways.has_holes({}, -1, {0, mib}));
}

// A change within the tick of the clock that stamps files may leave no trace.
TEST_F(PeerTest, NothingIsRememberedOfAFileThatHasJustChanged) {
  const auto name = tree.write("fresh", std::string(mib, 'f'));
  const os::Descriptor fd(::open(name.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::fsync(fd.get()), 0);
  auto stamp = os::read_stamp(fd.get()).value();
  stamp.changed_s += 1000;  // not settled
  PeerWays ways("");
  EXPECT_FALSE(ways.has_holes(stamp, fd.get(), {0, mib}));
  ASSERT_EQ(::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, mib), 0);
  EXPECT_TRUE(ways.has_holes(stamp, fd.get(), {0, mib}));
}

TEST_F(PeerTest, TheBrokenKernelIsNotEvenTried) {
  tree.write("proc/sys/kernel/osrelease", "6.16.3\n");
  peer = {};
  SetUp();
  const auto receipt = read(mib).value();
  EXPECT_EQ(receipt.refused[index(Route::p2pdma)], Reason::kernel_breaks_p2pdma);
  EXPECT_EQ(read(mib, policy(Policy::direct)).error().kind, ErrorKind::route_refused);
  EXPECT_EQ(device_.moves, 0);
}

TEST_F(PeerTest, ClaimedEvidenceIsNotObserved) {
  auto options = policy(Policy::direct);
  options.evidence = Demand::observed;
  const auto receipt = read(mib, options);
  if (receipt) {  // the kernel counted what the threads read
    EXPECT_EQ(receipt->routes[index(Route::p2pdma)].evidence.witness, Witness::trial);
    EXPECT_GE(receipt->disk_bytes, mib);
  } else {
    EXPECT_EQ(receipt.error().kind, ErrorKind::evidence_missing);
  }
}

TEST_F(PeerTest, MemoryStaysKnownUntilTransfersEnd) {
  auto job = file.submit_read({memory, memory_bytes}).value();
  peer = {};
  EXPECT_EQ(direct_bytes(job.result().value()), memory_bytes);
  EXPECT_TRUE(arrived(memory_bytes));
}

TEST_F(PeerTest, WhatCannotBeAdoptedIsSaid) {
  char byte = 0;
  EXPECT_FALSE(PeerMemory::adopt({&byte, 1}, "", context));      // no mapping of p2pmem/allocate
  EXPECT_FALSE(PeerMemory::adopt({&byte, 1}, "gpu0", context));  // no PCI address
  EXPECT_FALSE(PeerMemory::adopt({nullptr, 1}, device, context));
  EXPECT_FALSE(PeerMemory::adopt({&byte, SIZE_MAX}, device, context));
  EXPECT_FALSE(PeerMemory::adopt({memory, 4096}, device, context));  // known already
  EXPECT_FALSE(PeerMemory::allocate("0000:09:00.0", 4096, context));
  EXPECT_EQ(peer.memory().address, memory);
  EXPECT_EQ(peer.device(), device);
  EXPECT_EQ(PeerMemory().memory().address, nullptr);
}

}  // namespace
}  // namespace straightway
