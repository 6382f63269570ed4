#pragma once
// The contract of every engine that moves segments (docs/porting.md shows how to add one).
//
// One law: each accepted segment yields exactly one completion. Splitting, retry, fallback and
// counting live above, in drive/. All calls come from one thread at a time; only the wake-up object
// given at construction may be signalled from others.

#include <cstdint>
#include <memory>
#include <span>

#include "straightway/facts.hpp"
#include "straightway/result.hpp"
#include "straightway/route.hpp"

namespace straightway::memory {
class FilePins;
}

namespace straightway::transport {

class CufileFile;

// A file as transports see it. direct_fd is the O_DIRECT descriptor, -1 where there is none; pins
// is null where none were ever made, cufile where it is not registered with the vendor's library.
struct FileRef {
  int fd = -1;
  int direct_fd = -1;
  std::shared_ptr<memory::FilePins> pins = nullptr;
  std::shared_ptr<CufileFile> cufile = nullptr;
};

// What a transport needs of a file or memory while transfers run; keeps it alive. token is the
// transport's own (posix: the descriptors, or the address).
struct Attachment {
  std::shared_ptr<const void> owner;
  std::uint64_t token = 0;
  std::uint64_t direct_token = 0;
};

// A transfer. address is where the payload's first byte goes to or comes from. The envelope equals
// the payload unless this is a read and the transport's capabilities say that it takes wider ones
// (staged). Of a write both are always equal: the bytes around the payload are
// not the caller's.
struct Segment {
  // Comes back on the completion. The upper half is the transfer's own among those in flight.
  std::uint64_t cookie = 0;
  Direction direction = Direction::read;
  bool direct_io = false;  // use the O_DIRECT descriptor
  std::uint64_t file = 0;  // Attachment::token or, if direct_io, direct_token
  std::uint64_t address = 0;
  std::uint64_t file_offset = 0;  // payload
  std::uint64_t size_bytes = 0;   // payload, > 0
  std::uint64_t envelope_offset = 0;
  std::uint64_t envelope_bytes = 0;
  // Of reads through the page cache, by transports that read with posix; others may ignore them.
  bool dontcache = false;  // leave nothing cached that was not (RWF_DONTCACHE)
  bool trim = false;       // afterwards drop the envelope's whole pages from the cache
};

struct Completion {
  std::uint64_t cookie = 0;
  // Payload bytes moved (fewer are allowed; 0 of a read: end of file), or -errno, or a negative
  // code of cuFile (-5001 and below). Where error is
  // set it says more than the errno can (a GPU's error), and result is negative.
  std::int64_t result = 0;
  std::shared_ptr<const Error> error;
  // The storage was made to read this much for it; -1: not measured. What is measured for several
  // segments of one transfer stands on one of them.
  std::int64_t disk_bytes = -1;
};

struct Capabilities {
  const char* name = "";
  SpaceKind space = SpaceKind::host;
  bool reads = true;
  bool writes = true;
  std::uint64_t largest_segment_bytes = 0;
  std::uint32_t depth = 0;       // segments in flight at most
  bool takes_envelopes = false;  // envelope may be wider than the payload
  std::uint32_t threads = 0;     // that work for it
  std::uint64_t pinned_bytes = 0;
  std::uint64_t poll_interval_ns =
      0;                // > 0: while in flight, reap at least this often (no wake-up)
  bool broken = false;  // every segment fails from now on; whoever needs it opens another
};

class Transport {
 public:
  // Returns only when nothing is in flight.
  virtual ~Transport() = default;
  virtual const Capabilities& capabilities() const = 0;
  virtual Result<Attachment> attach(const FileRef& file) = 0;
  virtual Result<Attachment> attach(const MemoryRange& memory) = 0;
  // Takes a prefix and returns how many; fewer means full, not an error.
  virtual std::size_t submit(std::span<const Segment> segments) = 0;
  // Never blocks; returns how many completions it wrote.
  virtual std::size_t reap(std::span<Completion> completions) = 0;
};

}  // namespace straightway::transport
