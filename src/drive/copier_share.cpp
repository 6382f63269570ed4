#include "drive/copier_share.hpp"

#include <utility>

#include "plan/effort.hpp"

namespace straightway::drive {

CopierShare::CopierShare(CopierBudget budget, std::unique_ptr<os::Neighbours> neighbours)
    : budget_(budget),
      neighbours_(std::move(neighbours)),
      limit_(std::make_shared<std::atomic<std::uint32_t>>(budget.copiers)) {}

std::uint32_t CopierShare::look() {
  if (!neighbours_ || budget_.from_setting) return budget_.copiers;
  return plan::fair_copiers(budget_.copiers, budget_.cpus, neighbours_->look(budget_.in_quota));
}

// The word outlasts a short pause between two transfers, so that neighbours see no flicker.
std::uint64_t CopierShare::keep(bool working, std::uint64_t now_ns) {
  if (!neighbours_) return UINT64_MAX;
  if (working) {
    last_work_ns_ = now_ns;
    if (now_ns < next_look_ns_) return UINT64_MAX;
    next_look_ns_ = now_ns + look_interval_ns;
    neighbours_->announce(budget_.copiers);
    announced_ = true;
    limit_->store(look(), std::memory_order_relaxed);
    return UINT64_MAX;
  }
  if (!announced_) return UINT64_MAX;
  if (now_ns < last_work_ns_ + look_interval_ns) return last_work_ns_ + look_interval_ns;
  neighbours_->withdraw();
  announced_ = false;
  limit_->store(budget_.copiers, std::memory_order_relaxed);  // what was seen is too old by now
  return UINT64_MAX;
}

}  // namespace straightway::drive
