#include "tests/contract/run_segments.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <span>

namespace straightway::contract {
namespace {

using Completions = std::map<std::uint64_t, transport::Completion>;

// One look; returns how many there were.
std::size_t reap_once(Rig& rig, std::size_t most, std::set<std::uint64_t>& in_flight,
                      Completions& completions) {
  std::vector<transport::Completion> reaped(most);
  const auto count = rig.transport->reap(reaped);
  EXPECT_LE(count, most);
  for (std::size_t i = 0; i < std::min(count, most); ++i) {
    EXPECT_EQ(in_flight.erase(reaped[i].cookie), 1U) << "a completion for nothing";
    completions[reaped[i].cookie] = reaped[i];
  }
  return count;
}

}  // namespace

Completions run_segments(Rig& rig, const std::vector<transport::Segment>& segments,
                         const RunOptions& options) {
  const auto& capabilities = rig.transport->capabilities();
  const auto hopeless = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const std::uint64_t pause_ns =
      capabilities.poll_interval_ns != 0 ? capabilities.poll_interval_ns : 10'000'000;
  std::set<std::uint64_t> in_flight;
  Completions completions;
  std::size_t next = 0;
  while (next < segments.size() || !in_flight.empty()) {
    const auto offer =
        std::span(segments).subspan(next).first(std::min(options.offered, segments.size() - next));
    const auto taken = offer.empty() ? 0 : rig.transport->submit(offer);
    EXPECT_LE(taken, offer.size());
    for (const auto& segment : offer.first(taken)) in_flight.insert(segment.cookie);
    next += taken;
    EXPECT_LE(in_flight.size(), capabilities.depth) << "more in flight than the depth";
    const auto reaped = reap_once(rig, options.reaped, in_flight, completions);
    if (taken == 0 && reaped == 0) rig.wake->wait(pause_ns);
    if (std::chrono::steady_clock::now() > hopeless) {
      ADD_FAILURE() << in_flight.size() << " segments never completed";
      return completions;
    }
  }
  EXPECT_EQ(reap_once(rig, options.reaped, in_flight, completions), 0U) << "one too many";
  EXPECT_EQ(completions.size(), segments.size());
  return completions;
}

}  // namespace straightway::contract
