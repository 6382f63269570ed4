#include "skeleton_transport.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace straightway::examples {

using transport::Attachment;
using transport::Completion;
using transport::FileRef;
using transport::Segment;

namespace {

// REPLACE: what your engine does with one segment. Bytes moved, or -errno. No loop around a short
// transfer and no retry: drive/ does both, once, for every transport.
std::int64_t move(const Segment& segment) {
  const int fd = static_cast<int>(segment.file);
  void* address = reinterpret_cast<void*>(segment.address);
  const auto offset = static_cast<off_t>(segment.file_offset);
  const ssize_t moved = segment.direction == Direction::read
                            ? ::pread(fd, address, segment.size_bytes, offset)
                            : ::pwrite(fd, address, segment.size_bytes, offset);
  return moved < 0 ? -errno : moved;
}

}  // namespace

SkeletonTransport::SkeletonTransport(transport::Wake& wake) : wake_(wake) {
  // REPLACE: what your engine can do. Plans respect these numbers, so you need not check them.
  capabilities_.name = "skeleton";
  capabilities_.space = SpaceKind::host;
  capabilities_.largest_segment_bytes = std::uint64_t{1} << 30;
  capabilities_.depth = 8;
  capabilities_.threads = 1;
  worker_ = std::thread([this] { work(); });
}

SkeletonTransport::~SkeletonTransport() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  worker_.join();  // it empties the queue first
}

// REPLACE: register the file with your engine, or return why you cannot. Whatever must live while
// segments are in flight goes into owner; token comes back in Segment::file.
Result<Attachment> SkeletonTransport::attach(const FileRef& file) {
  Attachment attachment;
  attachment.token = static_cast<std::uint64_t>(file.fd);
  attachment.direct_token = static_cast<std::uint64_t>(file.direct_fd);
  return attachment;
}

// REPLACE: the same for memory, where your engine needs to know it first.
Result<Attachment> SkeletonTransport::attach(const MemoryRange& memory) {
  if (memory.space != SpaceKind::host) {
    Error error;
    error.kind = ErrorKind::unsupported;
    error.attempted = "attach device memory";
    error.why = "the skeleton moves host memory alone";
    return error;
  }
  Attachment attachment;
  attachment.token = memory.address;
  return attachment;
}

// Takes what fits and says how much that was. Never waits, and never refuses for good: a segment
// that cannot work is accepted and completes with -errno.
std::size_t SkeletonTransport::submit(std::span<const Segment> segments) {
  const std::size_t room = capabilities_.depth - in_flight_;
  const auto accepted = segments.first(std::min(segments.size(), room));
  if (accepted.empty()) return 0;
  {
    const std::lock_guard lock(mutex_);
    queue_.insert(queue_.end(), accepted.begin(), accepted.end());
  }
  changed_.notify_one();
  in_flight_ += static_cast<std::uint32_t>(accepted.size());
  return accepted.size();
}

// Gives out what is done, in any order, each once. Never waits.
std::size_t SkeletonTransport::reap(std::span<Completion> completions) {
  const std::lock_guard lock(mutex_);
  const std::size_t count = std::min(completions.size(), done_.size());
  const auto last = done_.begin() + static_cast<std::ptrdiff_t>(count);
  std::move(done_.begin(), last, completions.begin());
  done_.erase(done_.begin(), last);
  in_flight_ -= static_cast<std::uint32_t>(count);
  return count;
}

void SkeletonTransport::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Segment segment = queue_.front();
    queue_.pop_front();
    lock.unlock();
    Completion completion;
    completion.cookie = segment.cookie;
    completion.result = move(segment);
    lock.lock();
    done_.push_back(std::move(completion));
    // After it can be reaped, never before: whoever wakes up looks at once.
    wake_.signal();
  }
}

}  // namespace straightway::examples
