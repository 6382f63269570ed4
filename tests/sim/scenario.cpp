#include "tests/sim/scenario.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "drive/transfer.hpp"
#include "tests/sim/audit.hpp"
#include "tests/sim/draw.hpp"
#include "tests/sim/simulated_transport.hpp"
#include "tests/sim/world.hpp"

namespace straightway::sim {
namespace {

constexpr std::uint64_t steps_limit = 200'000;  // far beyond what any seed needs: no livelock

// The pump's part, on the virtual clock.
class Scenario {
 public:
  explicit Scenario(std::uint64_t seed) : world_(seed), drawn_(draw(world_)) {
    for (const bool envelopes : {false, true}) {
      for (const bool direct : {false, true}) {
        const auto depth = static_cast<std::uint32_t>(1 + world_.random.below(8));
        transports_.push_back(
            std::make_unique<SimulatedTransport>(world_, depth, envelopes, direct));
      }
    }
    drive::Routes routes;
    routes.buffered[index(Route::buffered)] = transports_[0].get();
    routes.direct[index(Route::direct_host)] = transports_[1].get();
    routes.buffered[index(Route::staged)] = transports_[2].get();
    routes.direct[index(Route::staged)] = transports_[3].get();
    for (std::uint32_t t = 0; t < drawn_.specs.size(); ++t) {
      transfers_.push_back(std::make_unique<drive::Transfer>(drawn_.specs[t], routes, t));
    }
    cancelled_.resize(transfers_.size());
  }

  Outcome run() {
    while (!all_drained() && world_.violation.empty()) {
      if (++steps_ > steps_limit) world_.broken("it does not end");
      interfere();
      const bool stepped = step_all();
      const bool reaped = reap_all();
      if (!stepped && !reaped) advance();
    }
    for (std::size_t t = 0; t < transfers_.size() && world_.violation.empty(); ++t) {
      audit(world_, t, *transfers_[t], cancelled_[t], drawn_.interferences[t].deadline_ns);
    }
    return {world_.violation, world_.trace, steps_};
  }

 private:
  bool all_drained() const {
    return std::all_of(transfers_.begin(), transfers_.end(),
                       [](const auto& transfer) { return transfer->drained(); });
  }

  void interfere() {
    if (world_.now_ns >= drawn_.shrink_ns) {
      auto& file = world_.files[world_.random.below(world_.files.size())];
      file.size_bytes = world_.random.below(file.size_bytes + 1);
      drawn_.shrink_ns = UINT64_MAX;
      world_.shrunk = true;
    }
    for (std::size_t t = 0; t < transfers_.size(); ++t) {
      const auto& interference = drawn_.interferences[t];
      auto& transfer = *transfers_[t];
      if (transfer.drained()) continue;
      if (world_.now_ns >= interference.deadline_ns) world_.transfers[t].stopped = true;
      if (world_.now_ns < interference.cancel_ns || cancelled_[t]) continue;
      Error reason;
      reason.kind = ErrorKind::cancelled;
      transfer.stop(reason);
      cancelled_[t] = true;
      world_.transfers[t].stopped = true;
    }
  }

  bool step_all() {
    bool worked = false;
    const auto first = world_.random.below(transfers_.size());
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      const auto t = (first + i) % transfers_.size();
      if (transfers_[t]->drained()) continue;
      worked |= transfers_[t]->step(world_.now_ns);
      look_at(t);
    }
    return worked;
  }

  bool reap_all() {
    bool reaped = false;
    for (auto& transport : transports_) {
      std::array<transport::Completion, 4> completions;
      const auto count = transport->reap(completions);
      for (std::size_t i = 0; i < count; ++i) {
        const auto t = static_cast<std::size_t>(completions[i].cookie >> 32);
        if (transfers_[t]->drained()) world_.broken("drained with a segment in flight");
        transfers_[t]->complete(completions[i], world_.now_ns);
      }
      reaped |= count > 0;
    }
    for (std::size_t t = 0; t < transfers_.size(); ++t) look_at(t);
    return reaped;
  }

  void look_at(std::size_t t) {
    auto& account = world_.transfers[t];
    const auto& transfer = *transfers_[t];
    if (transfer.error()) {
      account.stopped = true;
      if (!account.first_error) account.first_error = transfer.error();
      if (*account.first_error != *transfer.error()) world_.broken("a later reason won");
    }
    if (transfer.in_flight() != account.in_flight) world_.broken("in flight: miscounted");
    if (transfer.moved_bytes() != account.reported_bytes) world_.broken("moved: miscounted");
    if (transfer.moved_bytes() > transfer.wanted_bytes()) world_.broken("moved more than wanted");
  }

  // To the next thing that happens; a transport that was merely reluctant is asked again soon.
  void advance() {
    std::uint64_t next = world_.now_ns + 50;
    for (const auto& transport : transports_) next = std::min(next, transport->next_due_ns());
    world_.now_ns = std::max(next, world_.now_ns + 1);
  }

  World world_;
  Drawn drawn_;
  std::vector<std::unique_ptr<SimulatedTransport>> transports_;
  std::vector<std::unique_ptr<drive::Transfer>> transfers_;
  std::vector<bool> cancelled_;
  std::uint64_t steps_ = 0;
};

}  // namespace

Outcome run_seed(std::uint64_t seed) { return Scenario(seed).run(); }

}  // namespace straightway::sim
