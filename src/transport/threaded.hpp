#pragma once
// Adaptor: several workers, each with a transport of its own that completes on submit (posix), so
// that segments move at the same time. Workers start with the first segment.

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "transport/copier_limit.hpp"
#include "transport/transport.hpp"
#include "transport/wake.hpp"

namespace straightway::transport {

class Threaded final : public Transport {
 public:
  // Made on the worker's own thread.
  using Make = std::function<std::unique_ptr<Transport>()>;

  // wake outlives the transport. threads >= 1; limit: how many of them move bytes at this time.
  Threaded(Make make, std::uint32_t threads, Wake& wake, CopierLimit limit = nullptr);
  ~Threaded() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  Result<Attachment> attach(const FileRef& file) override { return prototype_->attach(file); }
  Result<Attachment> attach(const MemoryRange& memory) override {
    return prototype_->attach(memory);
  }
  std::size_t submit(std::span<const Segment> segments) override;
  std::size_t reap(std::span<Completion> completions) override;

 private:
  void move(std::unique_ptr<Transport>& transport, std::span<const Segment> segments,
            std::span<Completion> completions) const;
  std::size_t room_for(std::span<const Segment> segments) const;
  std::size_t take_share(std::span<Segment> share);
  void work(const std::stop_token& stop);
  void start_worker();

  Make make_;
  const CopierLimit limit_;
  Wake& wake_;
  std::unique_ptr<Transport> prototype_;  // for attach and capabilities
  Capabilities capabilities_;
  const std::uint32_t most_workers_;
  std::uint32_t workers_wanted_;  // fewer where no more threads are to be had
  std::mutex mutex_;
  std::condition_variable_any has_work_;
  std::deque<Segment> queue_;
  std::uint64_t queue_bytes_ = 0;
  std::vector<Completion> done_;
  std::uint32_t idle_ = 0;  // workers that wait for a segment
  std::uint32_t busy_ = 0;  // that move some
  std::vector<std::jthread> workers_;
  std::uint32_t in_flight_ = 0;  // accepted, not reaped; the caller's thread only
};

}  // namespace straightway::transport
