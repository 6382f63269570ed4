#include "tests/sim/audit.hpp"

#include <algorithm>
#include <cerrno>
#include <numeric>

namespace straightway::sim {
namespace {

// An error has a cause, and the first cause wins.
void audit_error(World& world, std::size_t number, const Error& error, bool cancelled,
                 std::uint64_t deadline_ns) {
  const auto& account = world.transfers[number];
  const bool storm = world.faults.interrupted == 1000;
  if (error.kind == ErrorKind::cancelled) {
    if (!cancelled) world.broken("cancelled by nobody");
  } else if (error.kind == ErrorKind::deadline_exceeded) {
    if (world.now_ns < deadline_ns) world.broken("a deadline that has not passed");
  } else if (!account.unrecoverable && !(storm && error.code == EINTR)) {
    world.broken("an error without a cause: " + std::to_string(error.code));
  }
  if (error.origin == ErrorOrigin::cuda && error.code != 700) {
    world.broken("the device's error lost its code");
  }
}

// What a leg must have moved, where its file kept its size.
std::uint64_t expected_bytes(const World& world, const drive::Leg& leg) {
  if (world.direction == Direction::write) return leg.range.size_bytes;
  const auto size = world.files[leg.file].size_bytes;
  const auto end = std::min(size, leg.range.offset + leg.range.size_bytes);
  return end > leg.range.offset ? end - leg.range.offset : 0;
}

bool right_byte(const World& world, const LegAccount& account, std::uint64_t i) {
  const auto at = account.leg.range.offset + i;
  if (world.direction == Direction::write) {
    return world.files[account.leg.file].bytes[at] == account.memory[i];
  }
  return account.memory[i] == file_byte(account.leg.file, at);
}

// claimed: what the receipt says this leg moved.
void audit_leg(World& world, const LegAccount& account, std::uint64_t claimed) {
  if (!world.shrunk && claimed != expected_bytes(world, account.leg)) {
    return world.broken("a range moved " + std::to_string(claimed) + " bytes instead of " +
                        std::to_string(expected_bytes(world, account.leg)));
  }
  for (std::uint64_t i = 0; i < claimed; ++i) {
    if (account.moves[i] == 0) return world.broken("a byte is claimed that never moved");
    if (!right_byte(world, account, i)) return world.broken("a wrong byte");
  }
}

// Each byte at most once, whatever happened.
void audit_moves(World& world, std::size_t number) {
  for (const auto& account : world.legs) {
    if (account.transfer != number) continue;
    for (const auto moves : account.moves) {
      if (moves > 1) return world.broken("a byte moved twice");
    }
  }
}

void audit_routes(World& world, std::size_t number, const Receipt& receipt) {
  std::uint64_t sum = 0;
  for (const auto& share : receipt.routes) {
    sum += share.bytes;
    if (share.bytes > 0 && share.segments == 0) world.broken("bytes on a route without a segment");
    if (share.bytes > 0 && share.reason == Reason::none) world.broken("a route without a reason");
  }
  if (sum != world.transfers[number].reported_bytes) {
    world.broken("the routes' bytes are not those that moved");
  }
  if ((receipt.fallbacks == 0) != (receipt.fallback_code == 0)) {
    world.broken("a fallback without its code, or the other way round");
  }
}

void audit_receipt(World& world, std::size_t number, const drive::Transfer& transfer) {
  Receipt receipt;
  receipt.direction = world.direction;
  transfer.account(receipt);
  audit_routes(world, number, receipt);
  std::uint64_t wanted = 0;
  std::uint64_t claimed_sum = 0;
  std::size_t i = 0;
  for (const auto& account : world.legs) {
    if (account.transfer != number) continue;
    const auto claimed = receipt.ranges ? receipt.ranges->moved_bytes.at(i) : receipt.moved_bytes;
    ++i;
    wanted += account.leg.range.size_bytes;
    claimed_sum += claimed;
    audit_leg(world, account, claimed);
  }
  if (receipt.ranges && receipt.ranges->moved_bytes.size() != i) world.broken("a range is missing");
  if (receipt.wanted_bytes != wanted) world.broken("wanted: miscounted");
  if (receipt.moved_bytes != claimed_sum) world.broken("moved is not the sum of its ranges");
  if (receipt.ended_early != (receipt.moved_bytes < wanted)) world.broken("ended early, or not");
  if (!world.shrunk && receipt.moved_bytes != world.transfers[number].reported_bytes) {
    world.broken("the receipt's bytes are not those that moved");
  }
}

}  // namespace

void audit(World& world, std::size_t number, const drive::Transfer& transfer, bool cancelled,
           std::uint64_t deadline_ns) {
  const auto& account = world.transfers[number];
  if (account.in_flight != 0) world.broken("drained with segments in flight");
  if (!world.shrunk) audit_moves(world, number);
  if (transfer.error()) {
    return audit_error(world, number, *transfer.error(), cancelled, deadline_ns);
  }
  if (account.unrecoverable) return world.broken("an error was swallowed");
  audit_receipt(world, number, transfer);
}

}  // namespace straightway::sim
