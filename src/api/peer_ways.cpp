#include "api/peer_ways.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "api/peer_trial.hpp"
#include "os/filled.hpp"

namespace straightway {
namespace {

PeerTrial& trial_of(PeerFacts& facts, Direction direction) {
  return direction == Direction::read ? facts.read_trial : facts.write_trial;
}

// Behind the end of a file nothing can be compared.
bool has_bytes(const Plan& plan, const FileRange& block) {
  return block.offset + block.size_bytes <= plan.request.file_size_bytes;
}

TrialOutcome try_first_block(const Plan& plan, const Run& run, const transport::FileRef& file,
                             const os::Syscalls& syscalls) {
  const FileRange block{run.file.offset, run.align_bytes};
  if (!has_bytes(plan, block)) return {};
  const auto address = plan.request.memory.address + (run.file.offset - plan.request.file.offset);
  return plan.request.direction == Direction::read ? try_peer_read(syscalls, file, block, address)
                                                   : try_peer_write(syscalls, file, block, address);
}

}  // namespace

const Run* peer_run(const Plan& plan) {
  const auto* end = plan.runs.data() + plan.run_count;
  const auto* run = std::find_if(plan.runs.data(), end,
                                 [](const Run& each) { return each.route == Route::p2pdma; });
  return plan.request.memory.space == SpaceKind::peer && run != end ? run : nullptr;
}

PeerWays::Way* PeerWays::find(const os::FileStorage& storage, const std::string& pci_device) {
  const auto found = std::find_if(ways_.begin(), ways_.end(), [&](const Way& way) {
    return way.storage == storage && way.facts->device == pci_device;
  });
  return found == ways_.end() ? nullptr : &*found;
}

std::shared_ptr<const PeerFacts> PeerWays::facts(const os::FileStorage& storage,
                                                 const std::string& filesystem,
                                                 const std::string& pci_device) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto* way = find(storage, pci_device)) return way->facts;
  }
  auto read = std::make_shared<const PeerFacts>(
      os::read_peer_facts(storage, filesystem, pci_device, root_));
  const std::lock_guard lock(mutex_);
  if (const auto* way = find(storage, pci_device)) return way->facts;
  ways_.push_back({storage, read});
  return read;
}

std::shared_ptr<const PeerFacts> PeerWays::attempt(const Plan& plan, const os::FileStorage& storage,
                                                   const transport::FileRef& file,
                                                   const os::Syscalls& syscalls) {
  const auto* run = peer_run(plan);
  const auto direction = plan.request.direction;
  const std::lock_guard one_at_a_time(trial_mutex_);
  auto known = *plan.peer;
  {
    const std::lock_guard lock(mutex_);
    if (const auto* way = find(storage, known.device)) known = *way->facts;
  }
  if (run == nullptr || trial_of(known, direction) != PeerTrial::untried) {
    return std::make_shared<const PeerFacts>(std::move(known));
  }
  const auto outcome = try_first_block(plan, *run, file, syscalls);
  trial_of(known, direction) = outcome.trial;
  known.trial_code = outcome.code;
  auto learned = std::make_shared<const PeerFacts>(std::move(known));
  if (outcome.trial != PeerTrial::impossible) {
    const std::lock_guard lock(mutex_);
    if (auto* way = find(storage, learned->device)) way->facts = learned;
  }
  return learned;
}

bool PeerWays::has_holes(const os::FileStamp& stamp, int direct_fd, const FileRange& range) {
  const auto end = range.offset + range.size_bytes;
  {
    const std::lock_guard lock(mutex_);
    const auto& known = filled_of(stamp);
    const bool inside =
        known.range.offset <= range.offset && end <= known.range.offset + known.range.size_bytes;
    if (inside && known.stamp == stamp) return false;
  }
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);  // before the look: what comes later is stamped
  const auto found = os::filled_end(direct_fd, range.offset, end);
  if (found < 0) return true;  // who knows
  const auto filled_end = static_cast<std::uint64_t>(found);
  if (filled_end > range.offset && os::is_settled(stamp, now)) {
    const std::lock_guard lock(mutex_);
    filled_of(stamp) = {stamp, {range.offset, filled_end - range.offset}};
  }
  return filled_end < end;
}

void PeerWays::learn_refusal(const os::FileStorage& storage, const std::string& pci_device,
                             Direction direction, std::int32_t code) {
  // A bad address says nothing of the way.
  if (code == EFAULT) return;
  const std::lock_guard lock(mutex_);
  auto* way = find(storage, pci_device);
  if (way == nullptr) return;
  auto learned = *way->facts;
  trial_of(learned, direction) = PeerTrial::refused;
  learned.trial_code = code;
  way->facts = std::make_shared<const PeerFacts>(std::move(learned));
}

}  // namespace straightway
