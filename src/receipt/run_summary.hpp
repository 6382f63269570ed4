#pragma once
// The reader's side of `straightway run`: the memory that a program's processes sum up their
// receipts in, and what stands there at the end, as values.

#include <cstdint>
#include <string>
#include <vector>

#include "os/descriptor.hpp"
#include "straightway/receipt.hpp"
#include "straightway/result.hpp"

namespace straightway::receipt {

struct RunSummary {
  struct Way {
    Route route = Route::buffered;
    Reason reason = Reason::none;
    std::uint64_t bytes = 0;
    std::uint64_t segments = 0;
    std::string sentence;  // why
  };
  struct Refusal {
    Route route = Route::buffered;
    Reason reason = Reason::none;
    std::string sentence;
  };
  // One file, one direction, one memory.
  struct File {
    std::string path;  // empty: it was not recorded; the files that found no place are one of these
    Direction direction = Direction::read;
    Door door = Door::straightway;
    SpaceKind space = SpaceKind::host;
    std::int32_t device = -1;
    bool is_rest = false;  // all that found no place of their own
    std::uint64_t requests = 0, moved_bytes = 0, wanted_bytes = 0, time_ns = 0;
    std::uint64_t retries = 0, fallbacks = 0, short_reads = 0;
    std::uint64_t disk_bytes = 0;
    std::uint64_t disk_unmeasured = 0;  // requests without a witness of the disk
    CacheFound found;
    std::uint64_t end = 0;  // the furthest byte asked for
    LayerCounters layer;
    std::vector<Way> ways;          // most bytes first
    std::vector<Refusal> refusals;  // of routes that moved nothing
  };
  struct Process {
    std::int64_t pid = 0;
    std::string program;
  };
  std::vector<File> files;         // most bytes first
  std::vector<Process> processes;  // that made a Context, in order
  std::uint64_t read_errors = 0, write_errors = 0;
};

// Owned by the command line while the program runs.
class RunMemory {
 public:
  static Result<RunMemory> create();
  // For STRAIGHTWAY_RUN: readable as long as this process lives, by the same user.
  std::string place() const;
  // As it stands now. Checked as hostile input: the program can write anything there.
  Result<RunSummary> read() const;

 private:
  explicit RunMemory(os::Descriptor fd) : fd_(std::move(fd)) {}
  os::Descriptor fd_;
};

}  // namespace straightway::receipt
