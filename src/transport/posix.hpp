#pragma once
// Segments by pread and pwrite, on the thread that submits them: each is complete when submit
// returns. The simplest transport, and the yardstick of the others.

#include <optional>
#include <vector>

#include "os/disk_account.hpp"
#include "os/syscalls.hpp"
#include "transport/transport.hpp"

namespace straightway::transport {

class Posix final : public Transport {
 public:
  // measure_disk: ask what this thread made the disk read, around the segments of one transfer that
  // come at once: a look costs as much as a small read. The transport then belongs to the thread
  // that submits first.
  explicit Posix(const os::Syscalls& syscalls, bool measure_disk = false);
  const Capabilities& capabilities() const override { return capabilities_; }
  Result<Attachment> attach(const FileRef& file) override;
  Result<Attachment> attach(const MemoryRange& memory) override;
  std::size_t submit(std::span<const Segment> segments) override;
  std::size_t reap(std::span<Completion> completions) override;

 private:
  Completion move(const Segment& segment) const;
  std::int64_t disk_reads();
  void count_disk(std::size_t first, std::int64_t before, std::int64_t after);
  std::int64_t read(const Segment& segment) const;

  const os::Syscalls& syscalls_;
  Capabilities capabilities_;
  std::vector<Completion> done_;
  const bool measures_disk_;
  std::optional<os::DiskAccount> account_;  // of the thread that submits
};

// What posix and uring take of a file: its descriptors.
Result<Attachment> attach_descriptors(const FileRef& file);
// What every host transport takes of memory: its address.
Result<Attachment> attach_host(const MemoryRange& memory);

}  // namespace straightway::transport
