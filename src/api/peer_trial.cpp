#include "api/peer_trial.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "drive/verdict.hpp"
#include "os/descriptor.hpp"

namespace straightway {
namespace {

constexpr std::size_t largest_block_bytes = 64 << 10;
constexpr std::size_t alignment = 4096;
constexpr int looks_limit = 3;  // at a block that somebody else keeps changing

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Block = std::unique_ptr<unsigned char, Free>;

// Copies to and from peer memory by the kernel, which answers EFAULT where a device is gone: the
// CPU's own load there would end the program.
class SafeCopy {
 public:
  SafeCopy() : file_(::memfd_create("straightway-trial", MFD_CLOEXEC)) {}
  bool from(std::uint64_t address, void* to, std::size_t size) const {
    return moved(::pwrite(file_.get(), reinterpret_cast<const void*>(address), size, 0), size) &&
           moved(::pread(file_.get(), to, size, 0), size);
  }
  bool to(std::uint64_t address, const void* from, std::size_t size) const {
    return moved(::pwrite(file_.get(), from, size, 0), size) &&
           moved(::pread(file_.get(), reinterpret_cast<void*>(address), size, 0), size);
  }

 private:
  static bool moved(ssize_t result, std::size_t size) {
    return result == static_cast<ssize_t>(size);
  }
  os::Descriptor file_;
};

class Bench {
 public:
  Bench(const os::Syscalls& syscalls, const transport::FileRef& file, const FileRange& block)
      : syscalls_(syscalls), fd_(file.direct_fd), block_(block) {}

  std::size_t size() const { return block_.size_bytes; }
  Block make() const {
    const auto rounded = (size() + alignment - 1) / alignment * alignment;
    return Block(static_cast<unsigned char*>(std::aligned_alloc(alignment, rounded)));
  }
  std::int64_t read(void* to) const {
    return repeat([&] { return syscalls_.pread(fd_, to, size(), block_.offset); });
  }
  std::int64_t write(const void* from) const {
    return repeat([&] { return syscalls_.pwrite(fd_, from, size(), block_.offset); });
  }
  bool whole(std::int64_t result) const { return result == static_cast<std::int64_t>(size()); }
  bool same(const Block& a, const Block& b) const {
    return std::equal(a.get(), a.get() + size(), b.get());
  }
  // Every byte another.
  void invert(const Block& from, const Block& to) const {
    std::transform(from.get(), from.get() + size(), to.get(),
                   [](unsigned char byte) { return static_cast<unsigned char>(~byte); });
  }

 private:
  template <class Call>
  static std::int64_t repeat(const Call& call) {
    std::int64_t result = -EINTR;
    for (int i = 0; i < looks_limit * 10 && (result == -EINTR || result == -EAGAIN); ++i) {
      result = call();
    }
    return result;
  }
  const os::Syscalls& syscalls_;
  int fd_;
  FileRange block_;
};

TrialOutcome refusal(Direction direction, std::int64_t result) {
  const bool listed =
      drive::judge(direction, result, 1, true, 0, Route::p2pdma) == drive::Verdict::fall_back;
  if (result < 0 && listed) return {PeerTrial::refused, static_cast<std::int32_t>(-result)};
  return {PeerTrial::impossible, result < 0 ? static_cast<std::int32_t>(-result) : 0};
}

bool usable(const transport::FileRef& file, const FileRange& block) {
  return file.direct_fd >= 0 && block.size_bytes > 0 && block.size_bytes <= largest_block_bytes;
}

}  // namespace

TrialOutcome try_peer_read(const os::Syscalls& syscalls, const transport::FileRef& file,
                           const FileRange& block, std::uint64_t address) {
  if (!usable(file, block)) return {};
  const Bench bench(syscalls, file, block);
  const SafeCopy copy;
  const Block expected = bench.make();
  const Block poison = bench.make();
  const Block before = bench.make();
  const Block found = bench.make();
  if (!expected || !poison || !before || !found) return {};
  if (!copy.from(address, before.get(), bench.size())) return {PeerTrial::refused, EFAULT};
  TrialOutcome outcome;
  for (int look = 0; look < looks_limit; ++look) {
    if (!bench.whole(bench.read(expected.get()))) break;
    bench.invert(expected, poison);
    if (!copy.to(address, poison.get(), bench.size())) break;
    const auto result = bench.read(reinterpret_cast<void*>(address));
    if (!bench.whole(result)) {
      outcome = refusal(Direction::read, result);
      break;
    }
    if (!copy.from(address, found.get(), bench.size())) break;
    outcome.trial = bench.same(expected, found) ? PeerTrial::passed : PeerTrial::data_lost;
    if (outcome.trial == PeerTrial::passed || bench.same(poison, found)) break;
    // Neither: a part arrived, or the block was changed meanwhile.
  }
  copy.to(address, before.get(), bench.size());
  return outcome;
}

TrialOutcome try_peer_write(const os::Syscalls& syscalls, const transport::FileRef& file,
                            const FileRange& block, std::uint64_t address) {
  if (!usable(file, block)) return {};
  const Bench bench(syscalls, file, block);
  const SafeCopy copy;
  const Block before = bench.make();
  const Block wanted = bench.make();
  const Block found = bench.make();
  if (!before || !wanted || !found) return {};
  if (!copy.from(address, wanted.get(), bench.size())) return {PeerTrial::refused, EFAULT};
  if (!bench.whole(bench.read(before.get()))) return {};
  if (bench.same(before, wanted)) {  // a write that is lost would not show
    bench.invert(wanted, found);
    if (!bench.whole(bench.write(found.get()))) return {};
  }
  const auto result = bench.write(reinterpret_cast<const void*>(address));
  const bool read_back = bench.whole(result) && bench.whole(bench.read(found.get()));
  if (read_back && bench.same(wanted, found)) return {PeerTrial::passed, 0};
  auto outcome = bench.whole(result) ? TrialOutcome{} : refusal(Direction::write, result);
  if (read_back) outcome.trial = PeerTrial::data_lost;
  bench.write(before.get());
  return outcome;
}

}  // namespace straightway
