#pragma once
// A transport to start from: it keeps every law of src/transport/transport.hpp with the smallest
// honest engine, one worker thread and pread/pwrite. docs/porting.md walks through it; the contract
// suite runs over it. Copy it, rename it, and replace what is marked REPLACE.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "transport/transport.hpp"
#include "transport/wake.hpp"

namespace straightway::examples {

class SkeletonTransport final : public transport::Transport {
 public:
  // wake outlives the transport; it is the only thing of the caller's that our thread touches.
  explicit SkeletonTransport(transport::Wake& wake);

  // Returns only when nothing is in flight: whoever destroys us may free the memory next.
  ~SkeletonTransport() override;

  const transport::Capabilities& capabilities() const override { return capabilities_; }
  Result<transport::Attachment> attach(const transport::FileRef& file) override;
  Result<transport::Attachment> attach(const MemoryRange& memory) override;
  std::size_t submit(std::span<const transport::Segment> segments) override;
  std::size_t reap(std::span<transport::Completion> completions) override;

 private:
  void work();

  transport::Wake& wake_;
  transport::Capabilities capabilities_;
  std::uint32_t in_flight_ = 0;  // accepted and not reaped; of the calling thread alone

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<transport::Segment> queue_;
  std::vector<transport::Completion> done_;
  bool closing_ = false;

  std::thread worker_;  // last: it starts when all the rest is there
};

}  // namespace straightway::examples
