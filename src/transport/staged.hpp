#pragma once
// Adaptor: device memory through a pinned ring. Copiers, each with a host transport of its own,
// fill (read) or drain (write) regions of the ring; copies of the space do the other side.
//
// Copiers take the next segments in order. Whoever has moved some sends what waits for a copy:
// whenever fewer than two copies are in flight, the longest run of filled regions leaves as one, up
// to 16 MiB. The engine loses about 5 us between two copies (measured: 48 GB/s in 1 MiB copies
// where 55 is the link), so runs grow by themselves exactly when the link is the limit, and nothing
// waits for a full slot. Nobody spins: who finds no room naps, and one at a time watches copies.

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "memory/space.hpp"
#include "transport/copier_limit.hpp"
#include "transport/fifo.hpp"
#include "transport/load.hpp"
#include "transport/ring.hpp"
#include "transport/sleepers.hpp"
#include "transport/transport.hpp"
#include "transport/wake.hpp"

namespace straightway::transport {

inline constexpr std::uint64_t staged_piece_bytes = std::uint64_t{1} << 20;

class Staged final : public Transport {
 public:
  // Makes a copier's host transport. It completes on submit (posix).
  using Make = std::function<std::unique_ptr<Transport>()>;

  // Pins the rest of the ring, on a copier's thread that finds no room. So the first copy waits for
  // a small part only, and small transfers pin no more than that.
  using Grow = std::function<Result<std::unique_ptr<memory::Pinned>>()>;

  // pinned: the ring, or its first part; at least a page. copiers >= 1; wake outlives the
  // transport. limit: how many copiers move bytes at this time.
  Staged(Make make, std::uint32_t copiers, std::unique_ptr<memory::Pinned> pinned,
         std::unique_ptr<memory::Lane> lane, Wake& wake, Grow grow = {},
         CopierLimit limit = nullptr);
  ~Staged() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  Result<Attachment> attach(const FileRef& file) override { return prototype_->attach(file); }
  Result<Attachment> attach(const MemoryRange& memory) override;
  std::size_t submit(std::span<const Segment> segments) override;
  std::size_t reap(std::span<Completion> completions) override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void work(const std::stop_token& stop, Transport& host);
  bool try_work(Lock& lock, Transport& host);
  bool work_once(Lock& lock, Transport& host);
  void rest(Lock& lock, const std::stop_token& stop);
  void start_copiers();

  // All below: with the lock held.
  std::byte* memory(std::uint64_t at) const;
  bool grow(Lock& lock);
  void count_starving();
  void advance();
  Load* next_load();
  std::uint32_t copiers_left(const Segment& segment) const;
  std::uint32_t claimers_left() const;
  bool may_drain(const Segment& segment) const;
  Load* drainable();
  Load* claim();
  Load* stage();
  void stage_writes();
  struct Next {
    std::size_t segments = 0;
    std::uint64_t bytes = 0;
  };
  Next next() const;
  bool reserve(std::size_t segments);
  void refuse();
  void take_finished_copies();
  void send_copies();
  void send_run(std::size_t first, std::size_t count);
  void settle(Load& load);
  void finish(Load& load);
  void retire();
  void fail_copies(const Error& error);
  bool should_tell() const;

  Make make_;
  const CopierLimit limit_;
  Wake& wake_;
  std::unique_ptr<Transport> prototype_;  // for attach, and where no thread is to be had
  std::unique_ptr<memory::Pinned> pinned_;
  std::unique_ptr<memory::Pinned> more_pinned_;  // the ring's rest
  std::unique_ptr<memory::Lane> lane_;
  Capabilities capabilities_;
  std::uint32_t accepted_ = 0;  // not reaped yet; the submitting thread only

  std::mutex mutex_;  // guards all below
  Fifo<Segment> queue_;
  std::uint64_t queue_bytes_ = 0;
  Ring ring_;
  Grow grow_;                          // empty: tried, or not to be had
  bool no_room_ = false;               // for the last load that was to be claimed
  Fifo<std::unique_ptr<Load>> loads_;  // those that hold a region, oldest first
  std::vector<std::unique_ptr<Load>> spare_;
  Fifo<std::uint64_t> tickets_;  // of the runs in flight, in order
  std::vector<Completion> done_;
  std::uint64_t done_bytes_ = 0;
  Sleepers idle_;              // copiers that have nothing to do
  std::uint32_t busy_ = 0;     // that move a load
  std::uint32_t copying_ = 0;  // of those, not by direct I/O
  bool watched_ = false;       // somebody looks at the copies in flight
  bool fresh_ = false;         // nothing of what began on an empty ring was reported yet
  bool told_ = false;          // the wake-up object was signalled, and nobody reaped since
  std::shared_ptr<const Error> broken_;  // the lane's sticky error: nothing more can be copied
  const std::uint32_t most_copiers_;
  std::uint32_t copiers_wanted_;
  std::uint32_t starved_ = 0;  // times that a load found the link idle
  std::vector<std::jthread> copiers_;
};

}  // namespace straightway::transport
