#pragma once
// How many segments of a transfer may fill the page cache from a disk at the same time. Where the
// disk is the limit, more than a few readers only wait for the same pages, at a cost: on a virtual
// machine with 8 MiB of readahead four reached the disk's rate for 0.2 CPU-s/GB, ten took 1.1.

#include <cstdint>

namespace straightway::drive {

class ColdReaders {
 public:
  bool has_room(std::uint64_t more) const { return under_way_ + more < limit_; }
  void begin(std::uint64_t count, std::uint64_t now_ns) {
    if (under_way_ == 0) since_ns_ = now_ns;
    under_way_ += count;
  }
  // Where each reader is as fast as its own copying, the disk is not the limit: one more.
  void end(std::uint64_t bytes, std::uint64_t now_ns) {
    --under_way_;
    bytes_ += bytes;
    busy_ns_ += now_ns - since_ns_;
    since_ns_ = now_ns;
    if (bytes_ < limit_ * sample_bytes || limit_ == most) return;
    if (bytes_ > limit_ * busy_ns_ * fast_bytes_per_us / 1000) ++limit_;
    busy_ns_ = bytes_ = 0;
  }
  std::uint64_t limit() const { return limit_; }

 private:
  static constexpr std::uint64_t most = 32;
  static constexpr std::uint64_t sample_bytes = std::uint64_t{2} << 20;
  static constexpr std::uint64_t fast_bytes_per_us = 700;  // a CPU fills 1000 and more

  std::uint64_t limit_ = 5;  // four that read, and one whose bytes are on their way on
  std::uint64_t under_way_ = 0;
  // Of this sample, and the time in which any was under way.
  std::uint64_t bytes_ = 0;
  std::uint64_t busy_ns_ = 0;
  std::uint64_t since_ns_ = 0;
};

}  // namespace straightway::drive
