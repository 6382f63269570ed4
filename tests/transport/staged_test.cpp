#include "transport/staged.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <map>

#include "tests/temp_file.hpp"
#include "transport/posix.hpp"

namespace straightway::transport {
namespace {

class HeapRing final : public memory::Pinned {
 public:
  explicit HeapRing(std::size_t size) : bytes_(size) {}
  std::byte* data() const override { return bytes_.data(); }
  std::size_t size_bytes() const override { return bytes_.size(); }

 private:
  mutable std::vector<std::byte> bytes_;
};

struct Copy {
  Direction direction;
  std::uint64_t device;
  void* host;
  std::size_t size;
};

const Error gone{ErrorKind::device, ErrorOrigin::cuda, 700, "copy", "", {}, "gone", ""};

// Copies run late, so that a region that is used again too early gives wrong bytes.
class LateLane final : public memory::Lane {
 public:
  LateLane(std::vector<std::size_t>& sizes, const std::atomic<bool>& lost,
           const std::atomic<bool>& held)
      : sizes_(sizes), lost_(lost), held_(held) {}
  Result<std::uint64_t> copy(Direction direction, std::uint64_t device, void* host,
                             std::size_t size) override {
    if (lost_) return gone;
    copies_.push_back({direction, device, host, size});
    sizes_.push_back(size);
    return ++issued_;
  }
  Result<std::uint64_t> poll() override {
    if (lost_) return gone;
    if (!copies_.empty() && !held_ && ++polls_ % 8 == 0) {
      const auto copy = copies_.front();
      copies_.pop_front();
      auto* device = reinterpret_cast<void*>(copy.device);
      copy.direction == Direction::read ? std::memcpy(device, copy.host, copy.size)
                                        : std::memcpy(copy.host, device, copy.size);
      ++done_;
    }
    return done_;
  }

 private:
  std::deque<Copy> copies_;
  std::vector<std::size_t>& sizes_;
  const std::atomic<bool>& lost_;
  const std::atomic<bool>& held_;
  std::uint64_t issued_ = 0;
  std::uint64_t done_ = 0;
  int polls_ = 0;
};

class StagedTest : public testing::Test {
 protected:
  std::unique_ptr<Staged> make(std::size_t pieces, std::uint32_t copiers = 3) {
    return std::make_unique<Staged>([] { return std::make_unique<Posix>(os::kernel()); }, copiers,
                                    std::make_unique<HeapRing>(pieces * staged_piece_bytes),
                                    std::make_unique<LateLane>(sizes, lost, held), *wake);
  }
  static Segment segment_of(int fd, Direction direction, std::vector<char>& memory,
                            std::uint64_t offset, std::uint64_t size) {
    Segment segment;
    segment.cookie = offset;
    segment.direction = direction;
    segment.file = static_cast<std::uint64_t>(fd);
    segment.file_offset = segment.envelope_offset = offset;
    segment.size_bytes = segment.envelope_bytes = size;
    segment.address = reinterpret_cast<std::uint64_t>(memory.data()) + offset;
    return segment;
  }
  // Moves all of memory in pieces; returns the sum of the results.
  static std::int64_t move_all(Staged& staged, int fd, Direction direction,
                               std::vector<char>& memory) {
    std::uint64_t offset = 0;
    std::size_t in_flight = 0;
    std::int64_t moved = 0;
    while (offset < memory.size() || in_flight > 0) {
      if (offset < memory.size()) {
        const auto size = std::min<std::uint64_t>(staged_piece_bytes, memory.size() - offset);
        const auto segment = segment_of(fd, direction, memory, offset, size);
        if (staged.submit({&segment, 1}) == 1) {
          offset += size;
          ++in_flight;
        }
      }
      Completion completions[4];
      const auto got = staged.reap(completions);
      in_flight -= got;
      for (std::size_t i = 0; i < got; ++i) moved += completions[i].result;
    }
    return moved;
  }

  std::vector<std::size_t> sizes;  // of the copies; read when nothing is in flight
  std::atomic<bool> lost{false};
  std::atomic<bool> held{false};
  std::unique_ptr<Wake> wake = std::move(*Wake::create());
  tests::TempFolder folder;
};

// Segments with gaps between them on the device, in one submission.
std::vector<Segment> scattered(int fd, std::vector<char>& device, std::uint64_t size,
                               std::uint64_t stride) {
  std::vector<Segment> segments;
  for (std::uint64_t at = 0; at + stride <= device.size(); at += stride) {
    Segment segment;
    segment.cookie = at;
    segment.file = static_cast<std::uint64_t>(fd);
    segment.file_offset = segment.envelope_offset = at;
    segment.size_bytes = segment.envelope_bytes = size;
    segment.address = reinterpret_cast<std::uint64_t>(device.data()) + at;
    segments.push_back(segment);
  }
  return segments;
}

std::map<std::uint64_t, Completion> run_all(Staged& staged, const std::vector<Segment>& segments) {
  std::map<std::uint64_t, Completion> done;
  std::size_t next = 0;
  while (done.size() < segments.size()) {
    next += staged.submit(std::span(segments).subspan(next));
    Completion completions[16];
    const auto got = staged.reap(completions);
    for (std::size_t i = 0; i < got; ++i) {
      EXPECT_FALSE(done.contains(completions[i].cookie));
      done[completions[i].cookie] = completions[i];
    }
  }
  return done;
}

TEST_F(StagedTest, ReadsThroughATinyRingWithLateCopies) {
  const auto bytes = tests::pattern((9 << 20) + 123);
  const int fd = ::open(folder.write("a", bytes).c_str(), O_RDONLY);
  for (const std::size_t pieces : {1, 2, 3, 8}) {
    auto staged = make(pieces);
    EXPECT_EQ(staged->capabilities().pinned_bytes, pieces << 20);
    std::vector<char> device(bytes.size());
    EXPECT_EQ(move_all(*staged, fd, Direction::read, device),
              static_cast<std::int64_t>(bytes.size()));
    EXPECT_EQ(device, bytes) << pieces;
  }
  ::close(fd);
}

std::atomic<int> inside, most_inside, wanted_inside, linger_ms;
// Waits until as many are inside as are wanted, for ten seconds at most, then lingers for one more.
std::int64_t meet(const std::function<std::int64_t()>& move) {
  const int now = ++inside;
  for (int most = most_inside; now > most && !most_inside.compare_exchange_weak(most, now);) {
  }
  for (int i = 0; most_inside < wanted_inside && i < 10'000; ++i) ::usleep(1000);
  for (int i = 0; most_inside == wanted_inside && i < linger_ms; ++i) ::usleep(1000);
  const auto result = move();
  --inside;
  return result;
}

void begin_meeting(int wanted, int linger = 0) {
  most_inside = 0;
  wanted_inside = wanted;
  linger_ms = linger;
}

os::Syscalls meeting_calls() {
  auto meeting = os::kernel();
  meeting.pread = [](int fd, void* to, std::size_t size, std::uint64_t offset) {
    return meet([=] { return os::kernel().pread(fd, to, size, offset); });
  };
  meeting.pwrite = [](int fd, const void* from, std::size_t size, std::uint64_t offset) {
    return meet([=] { return os::kernel().pwrite(fd, from, size, offset); });
  };
  return meeting;
}

TEST_F(StagedTest, NoMoreCopiersWorkThanTheLimitAllows) {
  const auto bytes = tests::pattern(12 << 20);
  const int fd = ::open(folder.write("a", bytes).c_str(), O_RDONLY);
  const auto meeting = meeting_calls();
  const auto limit = std::make_shared<std::atomic<std::uint32_t>>(4);
  Staged staged([&] { return std::make_unique<Posix>(meeting); }, 4,
                std::make_unique<HeapRing>(8 * staged_piece_bytes),
                std::make_unique<LateLane>(sizes, lost, held), *wake, {}, limit);
  for (const int now : {4, 1, 4, 2}) {
    limit->store(static_cast<std::uint32_t>(now));
    begin_meeting(now);
    std::vector<char> device(bytes.size());
    EXPECT_EQ(move_all(staged, fd, Direction::read, device),
              static_cast<std::int64_t>(bytes.size()));
    EXPECT_EQ(device, bytes);
    EXPECT_EQ(most_inside, now);
  }
  ::close(fd);
}

// A disk is asked for eight pieces at once, however many copiers there are.
TEST_F(StagedTest, EightCopiersWaitForADisk) {
  auto bytes = tests::pattern(32 << 20);
  const int fd = ::open(folder.write("a", bytes).c_str(), O_RDONLY);
  const int out = ::open(folder.path("out").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  const auto meeting = meeting_calls();
  for (const auto direction : {Direction::read, Direction::write}) {
    std::vector<char> device(bytes.size());
    auto& memory = direction == Direction::read ? device : bytes;
    Staged staged([&] { return std::make_unique<Posix>(meeting); }, 12,
                  std::make_unique<HeapRing>(32 * staged_piece_bytes),
                  std::make_unique<LateLane>(sizes, lost, held), *wake);
    auto segments = scattered(direction == Direction::read ? fd : out, memory, staged_piece_bytes,
                              staged_piece_bytes);
    for (auto& segment : segments) {
      segment.direct_io = true;
      segment.direction = direction;
    }
    begin_meeting(8, 20);
    run_all(staged, segments);
    EXPECT_EQ(most_inside, 8);
    EXPECT_EQ(memory, bytes);
  }
  EXPECT_EQ(folder.read("out"), bytes);
  ::close(out);
  ::close(fd);
}

// More memory is pinned where the link is the limit, not where a disk is: that would be slower.
TEST_F(StagedTest, DirectSegmentsKeepToTheFirstPartOfTheRing) {
  const auto bytes = tests::pattern(48 << 20);
  const int fd = ::open(folder.write("a", bytes).c_str(), O_RDONLY);
  std::atomic<bool> grown{false};
  const auto grow = [&]() -> Result<std::unique_ptr<memory::Pinned>> {
    grown = true;
    return std::unique_ptr<memory::Pinned>(new HeapRing(4 * staged_piece_bytes));
  };
  std::vector<char> device(bytes.size());
  Staged staged([] { return std::make_unique<Posix>(os::kernel()); }, 12,
                std::make_unique<HeapRing>(4 * staged_piece_bytes),
                std::make_unique<LateLane>(sizes, lost, held), *wake, grow);
  auto segments = scattered(fd, device, staged_piece_bytes, staged_piece_bytes);
  for (const bool direct : {true, false}) {
    for (auto& segment : segments) segment.direct_io = direct;
    held = true;  // until there is no room
    std::size_t next = 0;
    for (int i = 0; i < (direct ? 50 : 10'000) && !grown; ++i) {
      next += staged.submit(std::span(segments).subspan(next));
      ::usleep(1000);
    }
    EXPECT_EQ(grown, !direct);
    held = false;
    Completion done[16];
    for (std::size_t count = 0; count < segments.size(); count += staged.reap(done)) {
      next += staged.submit(std::span(segments).subspan(next));
    }
    EXPECT_EQ(device, bytes);
    std::ranges::fill(device, 0);
  }
  ::close(fd);
}

// Those that may not help with a disk move what is in the page cache meanwhile.
TEST_F(StagedTest, CopiersMoveHotSegmentsBesideDirectOnes) {
  const auto bytes = tests::pattern(12 << 20);
  const int fd = ::open(folder.write("a", bytes).c_str(), O_RDONLY);
  const auto meeting = meeting_calls();
  std::vector<char> device(bytes.size());
  Staged staged([&] { return std::make_unique<Posix>(meeting); }, 12,
                std::make_unique<HeapRing>(32 * staged_piece_bytes),
                std::make_unique<LateLane>(sizes, lost, held), *wake);
  auto segments = scattered(fd, device, staged_piece_bytes, staged_piece_bytes);
  for (std::size_t i = 0; i < 8; ++i) segments[i].direct_io = true;
  begin_meeting(9);
  ASSERT_EQ(staged.submit(segments), segments.size());
  Completion done[1];
  for (std::size_t count = 0; count < segments.size();) count += staged.reap(done);
  EXPECT_GE(most_inside, 9);
  EXPECT_EQ(device, bytes);
  ::close(fd);
}

TEST_F(StagedTest, WritesThroughATinyRingWithLateCopies) {
  auto bytes = tests::pattern((5 << 20) + 77);
  for (const std::size_t pieces : {1, 3}) {
    const auto path = folder.path("out");
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    auto staged = make(pieces);
    EXPECT_EQ(move_all(*staged, fd, Direction::write, bytes),
              static_cast<std::int64_t>(bytes.size()));
    EXPECT_EQ(folder.read("out"), bytes);
    ::close(fd);
  }
}

TEST_F(StagedTest, FilledPiecesLeaveAsOneRun) {
  const auto bytes = tests::pattern(64 << 20);
  const int fd = ::open(folder.write("a", bytes).c_str(), O_RDONLY);
  std::vector<char> device(bytes.size());
  {
    auto staged = make(32);
    move_all(*staged, fd, Direction::read, device);
  }
  EXPECT_EQ(device, bytes);
  EXPECT_LT(sizes.size(), 64U);  // fewer copies than pieces
  EXPECT_GT(*std::max_element(sizes.begin(), sizes.end()), staged_piece_bytes);
  ::close(fd);
}

TEST_F(StagedTest, SmallSegmentsThatTouchShareACopy) {
  const auto bytes = tests::pattern(4 << 20);
  const int fd = ::open(folder.write("a", bytes).c_str(), O_RDONLY);
  std::vector<char> device(bytes.size());
  const auto segments = scattered(fd, device, 16384, 16384);
  {
    auto staged = make(8);
    run_all(*staged, segments);
  }
  EXPECT_EQ(device, bytes);
  EXPECT_LT(sizes.size(), segments.size() / 4);
  ::close(fd);
}

// Counts how often it is given something.
class CountingPosix final : public Transport {
 public:
  explicit CountingPosix(std::atomic<int>& loads) : loads_(loads) {}
  const Capabilities& capabilities() const override { return posix_.capabilities(); }
  Result<Attachment> attach(const FileRef& file) override { return posix_.attach(file); }
  Result<Attachment> attach(const MemoryRange& memory) override { return posix_.attach(memory); }
  std::size_t submit(std::span<const Segment> segments) override {
    ++loads_;
    return posix_.submit(segments);
  }
  std::size_t reap(std::span<Completion> done) override { return posix_.reap(done); }

 private:
  Posix posix_{os::kernel()};
  std::atomic<int>& loads_;
};

// However many copiers there are: each load costs looks at the lock and a copy.
TEST_F(StagedTest, AShortQueueOfSmallSegmentsIsOneLoad) {
  const auto bytes = tests::pattern(256 << 10);
  const int fd = ::open(folder.write("a", bytes).c_str(), O_RDONLY);
  std::vector<char> device(bytes.size());
  std::atomic<int> loads{0};
  {
    Staged staged([&] { return std::make_unique<CountingPosix>(loads); }, 8,
                  std::make_unique<HeapRing>(4 * staged_piece_bytes),
                  std::make_unique<LateLane>(sizes, lost, held), *wake);
    run_all(staged, scattered(fd, device, 16384, 16384));
  }
  EXPECT_EQ(device, bytes);
  EXPECT_EQ(loads, 1);
  ::close(fd);
}

TEST_F(StagedTest, CopiersShareManyTinySegments) {
  const auto bytes = tests::pattern(256 * 64);
  const int fd = ::open(folder.write("a", bytes).c_str(), O_RDONLY);
  std::vector<char> device(bytes.size());
  std::atomic<int> loads{0};
  {
    Staged staged([&] { return std::make_unique<CountingPosix>(loads); }, 8,
                  std::make_unique<HeapRing>(4 * staged_piece_bytes),
                  std::make_unique<LateLane>(sizes, lost, held), *wake);
    run_all(staged, scattered(fd, device, 64, 64));
  }
  EXPECT_EQ(device, bytes);
  EXPECT_GE(loads, 8);
  EXPECT_LE(loads, 16);  // of 16 and more
  ::close(fd);
}

TEST_F(StagedTest, SmallSegmentsWithGapsTouchNothingElse) {
  const auto bytes = tests::pattern(1 << 20);
  const int fd = ::open(folder.write("a", bytes).c_str(), O_RDONLY);
  std::vector<char> device(bytes.size(), 'x');
  {
    auto staged = make(4);
    run_all(*staged, scattered(fd, device, 3000, 8192));
  }
  for (std::size_t at = 0; at < device.size(); ++at) {
    ASSERT_EQ(device[at], at % 8192 < 3000 ? bytes[at] : 'x') << at;
  }
  ::close(fd);
}

// The end of the file falls inside a load: what lies behind it is not copied.
TEST_F(StagedTest, SmallSegmentsAtTheEndGiveWhatThereIs) {
  const auto bytes = tests::pattern(100'000);
  const int fd = ::open(folder.write("a", bytes).c_str(), O_RDONLY);
  std::vector<char> device(200'000, 'x');
  {
    auto staged = make(4, 1);
    const auto done = run_all(*staged, scattered(fd, device, 5000, 5000));
    EXPECT_EQ(done.at(95'000).result, 5000);
    EXPECT_EQ(done.at(100'000).result, 0);
  }
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), device.begin()));
  EXPECT_TRUE(std::all_of(device.begin() + 100'000, device.end(), [](char c) { return c == 'x'; }));
  ::close(fd);
}

TEST_F(StagedTest, EnvelopesAreReadWholeAndOnlyThePayloadIsCopied) {
  const auto bytes = tests::pattern(16384);
  const int fd = ::open(folder.write("a", bytes).c_str(), O_RDONLY);
  auto staged = make(2);
  std::vector<char> device(16384, 'x');
  auto segment = segment_of(fd, Direction::read, device, 5000, 3000);
  segment.envelope_offset = 4096;
  segment.envelope_bytes = 4096;
  ASSERT_EQ(staged->submit({&segment, 1}), 1U);
  Completion completion;
  while (staged->reap({&completion, 1}) == 0) {
  }
  EXPECT_EQ(completion.result, 3000);
  EXPECT_TRUE(std::equal(bytes.begin() + 5000, bytes.begin() + 8000, device.begin() + 5000));
  EXPECT_EQ(device[4999], 'x');
  EXPECT_EQ(device[8000], 'x');
  ::close(fd);
}

TEST_F(StagedTest, AnEnvelopeThatMeetsTheEndGivesItsPartOfThePayload) {
  const auto bytes = tests::pattern(6000);
  const int fd = ::open(folder.write("a", bytes).c_str(), O_RDONLY);
  auto staged = make(2);
  std::vector<char> device(16384, 'x');
  auto segment = segment_of(fd, Direction::read, device, 5000, 3000);
  segment.envelope_offset = 4096;
  segment.envelope_bytes = 4096;
  staged->submit({&segment, 1});
  Completion completion;
  while (staged->reap({&completion, 1}) == 0) {
  }
  EXPECT_EQ(completion.result, 1000);
  EXPECT_EQ(device[6000], 'x');
  auto behind = segment_of(fd, Direction::read, device, 7000, 100);
  behind.envelope_offset = 4096;
  behind.envelope_bytes = 4096;
  staged->submit({&behind, 1});
  while (staged->reap({&completion, 1}) == 0) {
  }
  EXPECT_EQ(completion.result, 0);
  ::close(fd);
}

TEST_F(StagedTest, ALostDeviceFailsEverySegmentOnce) {
  held = true;
  const auto bytes = tests::pattern(4 << 20);
  const int fd = ::open(folder.write("a", bytes).c_str(), O_RDONLY);
  auto staged = make(8);
  std::vector<char> device(bytes.size());
  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto segment = segment_of(fd, Direction::read, device, i << 20, 1 << 20);
    ASSERT_EQ(staged->submit({&segment, 1}), 1U);
  }
  lost = true;
  std::vector<Completion> got;
  while (got.size() < 4) {
    Completion completions[8];
    const auto count = staged->reap(completions);
    got.insert(got.end(), completions, completions + count);
  }
  ASSERT_EQ(got.size(), 4U);
  for (const auto& completion : got) {
    EXPECT_EQ(completion.result, -EIO);
    ASSERT_TRUE(completion.error);
    EXPECT_EQ(completion.error->code, 700);
  }
  ::close(fd);
}

}  // namespace
}  // namespace straightway::transport
