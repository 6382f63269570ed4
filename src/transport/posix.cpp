#include "transport/posix.hpp"

#include <algorithm>

#include "transport/hand_out.hpp"

namespace straightway::transport {
namespace {

constexpr std::uint64_t largest_segment_bytes = std::uint64_t{1} << 30;  // pread stops below 2 GiB
constexpr std::uint32_t depth = 64;  // results kept between submit and reap

}  // namespace

Result<Attachment> attach_descriptors(const FileRef& file) {
  if (file.fd < 0 && file.direct_fd < 0) {
    return Error{ErrorKind::closed,           ErrorOrigin::straightway, 0, "attach a file", "", {},
                 "it has no open descriptor", "open it first"};
  }
  return Attachment{nullptr, static_cast<std::uint64_t>(file.fd),
                    static_cast<std::uint64_t>(file.direct_fd)};
}

Result<Attachment> attach_host(const MemoryRange& memory) {
  if (memory.space != SpaceKind::host) {
    return Error{ErrorKind::unsupported,
                 ErrorOrigin::straightway,
                 0,
                 "attach device memory",
                 "",
                 {},
                 "this transport moves host memory only",
                 "plan it as staged"};
  }
  return Attachment{nullptr, memory.address, memory.address};
}

Posix::Posix(const os::Syscalls& syscalls, bool measure_disk)
    : syscalls_(syscalls), measures_disk_(measure_disk) {
  capabilities_.name = "posix";
  capabilities_.largest_segment_bytes = largest_segment_bytes;
  capabilities_.depth = depth;
  capabilities_.threads = 1;
  done_.reserve(depth);
}

Result<Attachment> Posix::attach(const FileRef& file) { return attach_descriptors(file); }
Result<Attachment> Posix::attach(const MemoryRange& memory) { return attach_host(memory); }

std::int64_t Posix::read(const Segment& segment) const {
  const int fd = static_cast<int>(segment.file);
  void* memory = reinterpret_cast<void*>(segment.address);
  const auto pread = segment.dontcache ? syscalls_.pread_dontcache : syscalls_.pread;
  const auto result = pread(fd, memory, segment.size_bytes, segment.file_offset);
  if (segment.trim && result > 0) {
    syscalls_.drop_pages(fd, segment.file_offset, static_cast<std::uint64_t>(result));
  }
  return result;
}

Completion Posix::move(const Segment& segment) const {
  const int fd = static_cast<int>(segment.file);
  void* memory = reinterpret_cast<void*>(segment.address);
  Completion completion;
  completion.cookie = segment.cookie;
  completion.result = segment.direction == Direction::read
                          ? read(segment)
                          : syscalls_.pwrite(fd, memory, segment.size_bytes, segment.file_offset);
  return completion;
}

std::int64_t Posix::disk_reads() {
  if (!measures_disk_) return -1;
  if (!account_) account_.emplace();
  return account_->read_bytes();
}

// Of the completions from `first` on: of one transfer, whose receipt adds them up.
void Posix::count_disk(std::size_t first, std::int64_t before, std::int64_t after) {
  if (before < 0 || after < before) return;
  for (auto i = first; i < done_.size(); ++i) done_[i].disk_bytes = 0;
  done_[first].disk_bytes = after - before;
}

std::size_t Posix::submit(std::span<const Segment> segments) {
  const auto fit = segments.first(std::min(segments.size(), depth - done_.size()));
  auto before = fit.empty() ? -1 : disk_reads();
  for (std::size_t i = 0; i < fit.size();) {
    const auto first = done_.size();
    const auto transfer = fit[i].cookie >> 32;
    while (i < fit.size() && fit[i].cookie >> 32 == transfer) done_.push_back(move(fit[i++]));
    const auto after = disk_reads();
    count_disk(first, before, after);
    before = after;
  }
  return fit.size();
}

std::size_t Posix::reap(std::span<Completion> completions) { return hand_out(done_, completions); }

}  // namespace straightway::transport
