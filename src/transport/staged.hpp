#pragma once
// Adaptor: device memory through a pinned ring. A host transport fills (read) or drains (write) the
// ring's slots; copies of the space do the other side.
//
// Copies go out as runs: whenever fewer than two are in flight, the longest filled run at the head
// of the ring leaves as one copy, up to 16 MiB. The engine loses about 5 us between two copies
// (measured: 48 GB/s in 1 MiB copies where 55 is the link), so runs grow by themselves exactly when
// the link is the limit, and nothing waits for a full slot.

#include <cstddef>
#include <memory>
#include <vector>

#include "memory/space.hpp"
#include "transport/transport.hpp"

namespace straightway::transport {

inline constexpr std::uint64_t staged_piece_bytes = std::uint64_t{1} << 20;

class Staged final : public Transport {
 public:
  // pinned holds at least one piece.
  Staged(std::unique_ptr<Transport> host, std::unique_ptr<memory::Pinned> pinned,
         std::unique_ptr<memory::Lane> lane);
  ~Staged() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  Result<Attachment> attach(const FileRef& file) override { return host_->attach(file); }
  Result<Attachment> attach(const MemoryRange& memory) override;
  std::size_t submit(std::span<const Segment> segments) override;
  std::size_t reap(std::span<Completion> completions) override;

 private:
  enum class State : std::uint8_t {
    free,
    host_waits,  // for the host transport to take it
    host_moves,  // the host transport has it
    copy_waits,  // for a copy
    copying,
    finished,  // reported; the slot is reused in ring order
  };
  struct Slot {
    State state = State::free;
    Segment segment;
    std::uint64_t payload_at = 0;  // of the payload, from the slot's start
    std::uint64_t ticket = 0;
    Completion completion;  // collected until the segment is done
  };

  std::byte* slot_memory(std::uint64_t position) const;
  Slot& slot(std::uint64_t position) { return slots_[position % slots_.size()]; }
  bool continues_run(std::uint64_t position);
  void give_to_host();
  void take_from_host();
  void take_finished_copies();
  void send_copies();
  void send_run(std::uint64_t first, std::uint64_t count);
  void host_done(Slot& done, const Completion& completion);
  void finish(Slot& done);
  void fail_copies(const Error& error);

  std::unique_ptr<Transport> host_;
  std::unique_ptr<memory::Pinned> pinned_;
  std::unique_ptr<memory::Lane> lane_;
  Capabilities capabilities_;
  std::vector<Slot> slots_;
  std::uint64_t oldest_ = 0;  // positions count up; a slot is position % slots
  std::uint64_t next_ = 0;
  std::vector<std::uint64_t> tickets_;  // of the copies in flight, in order
  std::vector<Completion> done_;
  std::shared_ptr<const Error> broken_;  // the lane's sticky error: nothing more can be copied
};

}  // namespace straightway::transport
