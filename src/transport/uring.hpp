#pragma once
// Segments by io_uring, many in flight from one thread: for O_DIRECT at depth. Probed at run time;
// where the kernel or a seccomp filter refuses, create() says so and posix serves.

#include <liburing.h>

#include <memory>
#include <vector>

#include "os/disk_account.hpp"
#include "transport/transport.hpp"
#include "transport/wake.hpp"

namespace straightway::transport {

class Uring final : public Transport {
 public:
  // To be used by the thread that creates it, and no other. wake outlives the transport.
  static Result<std::unique_ptr<Uring>> create(std::uint32_t depth, Wake& wake);
  ~Uring() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  Result<Attachment> attach(const FileRef& file) override;
  Result<Attachment> attach(const MemoryRange& memory) override;
  std::size_t submit(std::span<const Segment> segments) override;
  std::size_t reap(std::span<Completion> completions) override;

 private:
  struct Slot {
    std::uint64_t cookie = 0;
    std::int64_t disk_bytes = -1;
  };
  Uring() = default;
  void enter();
  void give_up(int code);
  void poll_if_needed();
  std::size_t in_kernel() const { return slots_.size() - free_.size() - unsubmitted_.size(); }
  std::size_t fail(std::span<const Segment> segments);
  void charge(std::span<const Segment> segments, std::uint32_t first, std::int64_t before);

  io_uring ring_{};
  bool open_ = false;
  Capabilities capabilities_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> unsubmitted_;  // slots, the oldest first: not taken by the kernel yet
  std::uint32_t refusals_ = 0;              // of io_uring_enter, in a row
  int code_ = 0;                            // of the last, once the ring was given up
  std::vector<std::uint64_t> failed_;       // cookies of segments that end with it
  os::DiskAccount account_;
};

}  // namespace straightway::transport
