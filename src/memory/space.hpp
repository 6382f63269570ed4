#pragma once
// A kind of memory. Host memory needs none of this; a device space copies between pinned host
// memory and device memory, asynchronously, on streams of its own.
//
// Thread rule: open_lane may be called from any thread; a Lane belongs to one thread at a time.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "straightway/facts.hpp"
#include "straightway/result.hpp"
#include "straightway/route.hpp"

namespace straightway::memory {

// Host memory that the device reads and writes by DMA. Unpinned when destroyed, which first waits
// for the copies that use it.
class Pinned {
 public:
  virtual ~Pinned() = default;
  virtual std::byte* data() const = 0;  // page aligned
  virtual std::size_t size_bytes() const = 0;
};

// Pages of the page cache that devices read by DMA: as they were, until this is destroyed, whatever
// becomes of the file. Destroy it only when no copy uses them.
class HeldPages {
 public:
  virtual ~HeldPages() = default;
  // Whether the driver still knows them: a device that was reset forgets them.
  virtual bool held() const = 0;
  // In a forked child neither they nor their mapping are there.
  virtual bool forked() const = 0;
};

// A queue of copies to or from one device, in order.
class Lane {
 public:
  virtual ~Lane() = default;  // waits for its copies
  // Queues one copy; tickets count up from 1. read: host to device. The host side lies in pinned
  // memory of this space, or (read) in held pages.
  virtual Result<std::uint64_t> copy(Direction direction, std::uint64_t device_address, void* host,
                                     std::size_t size_bytes) = 0;
  // The state of the oldest copies: returns the highest ticket that is done. An error is sticky:
  // every later call returns it, and nothing is in flight any more.
  virtual Result<std::uint64_t> poll() = 0;
};

// Pinned bytes for small transfers, each on its caller's own thread from one end to the other.
// Belongs to one thread at a time.
class Desk {
 public:
  virtual ~Desk() = default;
  virtual std::byte* data() const = 0;  // page aligned
  virtual std::size_t size_bytes() const = 0;
  // Copies between the first bytes of data() and device memory, ordered in the user's stream
  // (nullopt: the legacy default stream of the device) as one of its own copies, and returns when
  // it is done, whatever the outcome. A capturing stream is an error, and no capture is disturbed.
  virtual Result<void> copy(Direction direction, std::uint64_t device_address,
                            std::size_t size_bytes, std::optional<void*> stream) = 0;
  // Whether no work is left in that stream; false where it cannot be told. No capture is disturbed.
  virtual bool is_idle(std::optional<void*> stream) = 0;
  // As copy(), to device memory, from held pages or from a part of data(), of any size.
  virtual Result<void> copy_held(std::uint64_t device_address, std::byte* pages,
                                 std::size_t size_bytes, std::optional<void*> stream) = 0;
};

// A point in a user's stream. Any thread may ask, one at a time.
class Mark {
 public:
  virtual ~Mark() = default;
  // Whether the work queued before it is done; never blocks.
  virtual Result<bool> reached() = 0;
  // Returns when it is.
  virtual Result<void> wait() = 0;
};

class Space {
 public:
  virtual ~Space() = default;
  virtual SpaceKind kind() const = 0;
  // Which memory this is: the piece around the pointer, as far as it is known, with size_bytes from
  // there on at least. nullopt where the pointer is not of this space (host memory). An error where
  // it is, but not usable: freed, too small for size_bytes, of a lost device.
  virtual Result<std::optional<MemoryRange>> find(const void* address,
                                                  std::uint64_t size_bytes) const = 0;
  // threads: that may work on it, beside the caller's, for as long as the call takes.
  virtual Result<std::unique_ptr<Pinned>> pin(std::int32_t device, std::size_t size_bytes,
                                              std::uint32_t threads = 1) = 0;
  virtual Result<std::unique_ptr<Lane>> open_lane(std::int32_t device) = 0;
  virtual Result<std::unique_ptr<Desk>> open_desk(std::int32_t device, std::size_t size_bytes) = 0;
  // Whether hold_pages() can work. device -1, here and below: that of this thread's current
  // context, else the first.
  virtual Result<void> can_hold_pages(std::int32_t device) = 0;
  // Holds whole pages of a read-only mapping of a file, for copies to any device of this space. The
  // mapping outlives the result.
  virtual Result<std::unique_ptr<HeldPages>> hold_pages(std::int32_t device, void* pages,
                                                        std::size_t size_bytes) = 0;
  // Calls work with the device's primary context current on this thread, and no capture of the user
  // disturbed: for libraries that expect a context there. Not called where there is none to be had.
  virtual Result<void> in_context(std::int32_t device, const std::function<void()>& work) = 0;
  // The work queued on the user's stream up to now (nullopt: the legacy default stream of the
  // device). Called on the user's own thread. A capturing stream is an error, and no capture is
  // disturbed.
  virtual Result<std::unique_ptr<Mark>> mark_stream(std::int32_t device,
                                                    std::optional<void*> stream) = 0;
};

}  // namespace straightway::memory
