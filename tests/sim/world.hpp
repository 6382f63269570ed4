#pragma once
// The simulated world of one seed: files, memory, a virtual clock, and the faults that the seed
// draws. It keeps an account of every byte, against which the drive's is checked.

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "drive/transfer.hpp"

namespace straightway::sim {

// Thousandths: how often a completion is this.
struct Faults {
  std::uint32_t interrupted = 0;        // EINTR
  std::uint32_t again = 0;              // EAGAIN
  std::uint32_t shortened = 0;          // a part of what was asked
  std::uint32_t nothing = 0;            // a write that took 0 bytes
  std::uint32_t direct_refused = 0;     // EINVAL or EOPNOTSUPP, of direct I/O alone
  std::uint32_t failed = 0;             // EIO; ENOSPC of writes
  std::uint32_t device_failed = 0;      // an error that a space reports
  std::uint32_t look_refused = 0;       // the kernel does not tell what is cached
  std::uint32_t dontcache_refused = 0;  // EOPNOTSUPP, of reads that leave nothing cached
  std::uint32_t full = 0;               // a submit that takes fewer than fit
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  // 0 to below - 1; below > 0. The same on every machine, unlike std::uniform_int_distribution.
  std::uint64_t below(std::uint64_t below) { return engine_() % below; }
  bool often(std::uint32_t thousandths) { return below(1000) < thousandths; }

 private:
  std::mt19937_64 engine_;
};

struct SimFile {
  std::uint64_t planned_bytes = 0;  // as it was when it was planned
  std::uint64_t size_bytes = 0;     // now; it may have shrunk
  std::vector<std::uint8_t> bytes;
};

// One byte of memory: what the file has for it, and how often it moved.
struct LegAccount {
  std::uint32_t transfer = 0;
  drive::Leg leg;
  std::vector<std::uint8_t> memory;
  std::vector<std::uint32_t> moves;  // by byte
};

// What happened to one transfer.
struct TransferAccount {
  std::uint64_t reported_bytes = 0;  // by completions that were delivered
  std::uint32_t in_flight = 0;
  std::optional<Error> first_error;  // the transfer's, as it was when first seen
  bool unrecoverable = false;        // such a completion was delivered
  bool stopped = false;  // cancelled, past its deadline, or failed: nothing may be submitted
};

// The bytes of the files never repeat within reach: byte i of file f.
std::uint8_t file_byte(std::uint32_t file, std::uint64_t i);

class World {
 public:
  explicit World(std::uint64_t seed) : random(seed) {}

  // One broken invariant; the first is kept.
  void broken(const std::string& what);
  void note(std::uint64_t event);  // into the trace

  Random random;
  Faults faults;
  std::uint64_t now_ns = 1000;
  std::vector<SimFile> files;
  std::vector<LegAccount> legs;
  std::vector<TransferAccount> transfers;
  Direction direction = Direction::read;
  bool may_fall_back = true;
  bool shrunk = false;  // a file was truncated on the way
  std::string violation;
  std::uint64_t trace = 14695981039346656037ULL;
};

}  // namespace straightway::sim
