#pragma once
// How many of its copiers a Context lets work, beside those of other processes: it says that it
// copies while large transfers run, and looks now and then who else does.

#include <atomic>
#include <cstdint>
#include <memory>

#include "os/neighbours.hpp"
#include "transport/copier_limit.hpp"

namespace straightway::drive {

// What a Context has for its copiers without neighbours.
struct CopierBudget {
  std::uint32_t copiers = 1;  // at most
  std::uint32_t cpus = 1;     // that they may use
  bool in_quota = false;      // the cgroup's quota gives them
  bool from_setting = false;  // the user chose copiers: no neighbour changes that
};

class CopierShare {
 public:
  // A look takes a few microseconds.
  static constexpr std::uint64_t look_interval_ns = 100'000'000;
  // A transfer of less is over before it matters.
  static constexpr std::uint64_t large_transfer_bytes = std::uint64_t{16} << 20;

  // neighbours: null where there is none to look at.
  CopierShare(CopierBudget budget, std::unique_ptr<os::Neighbours> neighbours);

  // For transports; it changes as keep() looks.
  transport::CopierLimit limit() const { return limit_; }
  // Looks, and says how many copiers there are for this process now. Any thread.
  std::uint32_t look();
  const CopierBudget& budget() const { return budget_; }

  // One thread, often: whether large transfers are under way. Until when it wants to be asked
  // again; UINT64_MAX: no matter.
  std::uint64_t keep(bool working, std::uint64_t now_ns);

 private:
  const CopierBudget budget_;
  const std::unique_ptr<os::Neighbours> neighbours_;
  const std::shared_ptr<std::atomic<std::uint32_t>> limit_;
  bool announced_ = false;
  std::uint64_t next_look_ns_ = 0;
  std::uint64_t last_work_ns_ = 0;
};

}  // namespace straightway::drive
