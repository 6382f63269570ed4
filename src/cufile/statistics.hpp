#pragma once
// The counters of the cuFile API, levels 1 to 3: counted as the vendor's 1.20 counts, written in
// the layout of the version that is answered.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "cufile/published.hpp"
#include "memory/fork_guard.hpp"
#include "straightway/plan.hpp"

namespace straightway::cufile {

// One transfer that has ended, by whatever call.
struct CountedCall {
  Flow flow = Flow::read;
  std::uint64_t requested_bytes = 0;
  std::uint64_t duration_us = 0;
  bool failed = false;
  bool empty_read = false;  // at or behind the end of the file
  std::int32_t device = -1;
  LayerCounters parts{};
  std::uint64_t unaligned_parts = 0;
  std::uint64_t pooled_parts = 0;  // all of a request but the one that its caller runs
};

class Statistics {
 public:
  Statistics(int answered_version, int level);
  ~Statistics();
  Statistics(const Statistics&) = delete;
  Statistics& operator=(const Statistics&) = delete;

  // 0..3; counting starts by itself at a level above 0 that was configured.
  int level() const { return level_.load(std::memory_order_relaxed); }
  void set_level(int level);
  // Never in a forked child: the counters are its parent's.
  bool counting() const {
    return counting_.load(std::memory_order_relaxed) && !fork_guard_.forked();
  }
  abi::Code start();
  void stop() { counting_.store(false); }
  void reset();

  void count(const CountedCall& call);
  void count_result(abi::Counter abi::Level1::* counter, bool ok, std::uint64_t times = 1);
  // Of a batch: latencies are sums in microseconds.
  void add(std::uint64_t abi::Level1::* sum, std::uint64_t by);
  void set(std::uint64_t abi::Level1::* value, std::uint64_t to);
  void count_buffer(std::int32_t device, std::uint64_t size_bytes, bool registered);

  // Names the devices to readers in other processes, who cannot ask this one's driver.
  using Uuid = std::function<std::array<char, 16>(std::int32_t device)>;
  void show_gpus(std::uint64_t gpu_count, const Uuid& uuid) const;
  // Whole numbers, as they stand now. uuid is asked for each of gpu_count devices.
  std::unique_ptr<Published> snapshot(std::uint64_t gpu_count, const Uuid& uuid) const;

 private:
  const int answered_version_;
  std::atomic<int> level_;
  std::atomic<bool> counting_;
  memory::ForkGuard fork_guard_;
  Published* counters_;
  int fd_ = -1;  // of the shared memory, else the counters are private
};

// Makes averages and rates of the sums in it. now_second: CLOCK_MONOTONIC.
void fill_rates(Published& counters, std::uint64_t now_second);
void fill_averages(abi::Level1& sums);
// The second of CLOCK_MONOTONIC.
std::uint64_t this_second();

// The bucket of a size: below 4 KiB, then by powers of two.
std::size_t size_bucket(std::uint64_t size_bytes);

// Writes the structure of a level in the layout of a version, and not a byte more.
void write_level(void* out, int level, int version, const Published& counters);

}  // namespace straightway::cufile
