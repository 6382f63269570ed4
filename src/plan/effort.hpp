#pragma once
// How many threads copy, through how much pinned memory, and what decides that.

#include <cstdint>
#include <string>
#include <vector>

#include "straightway/plan.hpp"

namespace straightway::plan {

// Ten copiers fill a PCIe 5 x16 link from large folios, up to fourteen from 4 KiB pages (measured);
// they start as the link takes them.
inline constexpr std::uint32_t copiers_limit = 16;
// Pieces of direct I/O that a disk is asked for at once, through the ring (measured; load.hpp).
inline constexpr std::uint32_t direct_copiers_limit = 8;
// Up to this size a hand-off to another thread costs more than it gains.
inline constexpr std::uint64_t inline_limit_bytes = std::uint64_t{256} << 10;

// What bounds the copiers of a plan.
enum class CopierBound : std::uint8_t {
  none,            // it takes no copiers
  calling_thread,  // small
  one_writer,      // more make no write into the page cache faster
  setting,         // threads
  quota,           // the cgroup's
  cpus,            // that the process may use
  link,            // copiers_limit
  disk,            // direct_copiers_limit
  neighbours,      // what other processes of this user leave at this time
};
const char* to_string(CopierBound bound);

struct Effort {
  std::uint32_t most_copiers = 0;
  CopierBound bound = CopierBound::none;
  std::uint64_t most_pinned_bytes = 0;  // of the ring; 0: none
  bool operator==(const Effort&) const = default;
};

// The threads that a Context may use: its setting, or the CPUs up to copiers_limit.
std::uint32_t thread_budget(const Settings& settings, std::uint32_t cpus);

// How many copiers of those wanted are one process's on these CPUs, where others want as many as
// `others` says: what those that want few leave is shared by the rest. At least one, and no fewer
// than an equal share; wanted >= 1.
std::uint32_t fair_copiers(std::uint32_t wanted, std::uint32_t cpus,
                           std::vector<std::uint32_t> others);

// A number of threads in the plan's settings that nobody set is what neighbours leave.
Effort effort_of(const Plan& plan);
// "at most 10 copiers (the CPUs that this process may use), 64 MiB of pinned memory"; empty where
// there are no copiers.
std::string describe(const Effort& effort, const Settings& settings);

}  // namespace straightway::plan
