#include "tests/sim/draw.hpp"

#include <algorithm>
#include <string>

namespace straightway::sim {
namespace {

constexpr std::uint64_t largest_file_bytes = 64 * 1024;
constexpr std::uint32_t align_bytes = 512;

void draw_faults(World& world) {
  auto& random = world.random;
  auto& faults = world.faults;
  // Half of the kinds each time, seldom or often; unrecoverable ones are rare, or no byte moves.
  const auto maybe = [&](std::uint32_t most) {
    return random.below(2) == 0 ? 0U : static_cast<std::uint32_t>(random.below(most));
  };
  faults.interrupted = maybe(600);
  faults.again = maybe(600);
  faults.shortened = maybe(800);
  faults.nothing = maybe(300);
  faults.direct_refused = maybe(500);
  faults.failed = random.below(4) == 0 ? static_cast<std::uint32_t>(random.below(60)) : 0;
  faults.device_failed = random.below(8) == 0 ? static_cast<std::uint32_t>(random.below(60)) : 0;
  faults.full = maybe(900);
  faults.look_refused = maybe(300);
  faults.dontcache_refused = random.below(2) == 0 ? 0 : 1000;
  if (random.below(100) == 0) faults.interrupted = 1000;  // a storm without end
}

void draw_files(World& world) {
  auto& random = world.random;
  const auto count = 1 + random.below(3);
  for (std::uint32_t f = 0; f < count; ++f) {
    SimFile file;
    file.planned_bytes = random.below(largest_file_bytes);
    file.size_bytes = file.planned_bytes;
    if (random.below(4) == 0) file.size_bytes = random.below(file.planned_bytes + 1);
    file.bytes.resize(file.planned_bytes);
    for (std::uint64_t i = 0; i < file.planned_bytes; ++i) file.bytes[i] = file_byte(f, i);
    world.files.push_back(std::move(file));
  }
}

Run run_of(Route route, Reason reason, std::uint64_t from, std::uint64_t to, bool direct_io,
           std::uint64_t segment_bytes) {
  Run run;
  run.route = route;
  run.reason = reason;
  run.file = {from, to - from};
  run.segment_bytes = segment_bytes;
  run.direct_io = direct_io;
  run.align_bytes = direct_io ? align_bytes : 1;
  return run;
}

// How its cold parts go. O_DIRECT into host memory asks for memory that is aligned with the file.
void draw_cold(World& world, bool staged, Run& run) {
  constexpr ColdWay ways[] = {ColdWay::same, ColdWay::kept, ColdWay::dropped, ColdWay::trimmed,
                              ColdWay::direct};
  run.cold = ways[world.random.below(std::size(ways))];
  if (run.cold == ColdWay::same) return;
  run.cold_reason = Reason::cold_kept;
  run.cold_align_bytes = run.cold == ColdWay::direct ? align_bytes : 1;
  if (run.cold == ColdWay::direct && !staged && world.random.below(2) == 0) {
    run.cold = ColdWay::trimmed;
  }
}

// A page cache in which anything may have changed since the last look.
plan::Look draw_look(World& world, const FileRange& range) {
  if (world.random.often(world.faults.look_refused)) return {};
  const auto state = world.random.below(3);
  if (state == 0) return {true, 0};
  return {true, state == 1 ? range.size_bytes : world.random.below(range.size_bytes + 1)};
}

// The runs of one leg, as a plan would have them: one, or a direct middle between buffered edges.
void draw_runs(World& world, bool staged, drive::Leg& leg) {
  auto& random = world.random;
  const auto from = leg.range.offset;
  const auto to = from + leg.range.size_bytes;
  if (from == to) return;
  const std::uint64_t segment_bytes = std::uint64_t{512} << random.below(6);
  const bool direct = random.below(2) == 0;
  const bool write = world.direction == Direction::write;
  const auto route = staged ? Route::staged : direct ? Route::direct_host : Route::buffered;
  const auto add = [&](Reason reason, std::uint64_t first, std::uint64_t last, bool direct_io) {
    const auto way = direct_io || staged ? route : Route::buffered;
    if (first < last) {
      leg.runs[leg.run_count++] = run_of(way, reason, first, last, direct_io, segment_bytes);
    }
  };
  if (!direct || (staged && !write)) {
    add(Reason::host_memory, from, to, direct);
    if (!direct && !write) draw_cold(world, staged, leg.runs[leg.run_count - 1]);
    return;
  }
  const auto middle = std::min((from + align_bytes - 1) / align_bytes * align_bytes, to);
  const auto tail = std::max(to / align_bytes * align_bytes, middle);
  add(Reason::edge_block, from, middle, false);
  add(Reason::policy_direct, middle, tail, true);
  add(Reason::edge_block, tail, to, false);
}

drive::Leg draw_leg(World& world, std::uint32_t transfer, bool staged) {
  auto& random = world.random;
  drive::Leg leg;
  leg.file = static_cast<std::uint32_t>(random.below(world.files.size()));
  const auto size = world.files[leg.file].planned_bytes;
  leg.range.offset = random.below(size + 1);
  leg.range.size_bytes = random.below(size - leg.range.offset + 1);
  if (world.direction == Direction::write) leg.range.size_bytes = 0;  // given by draw_transfer
  // Addresses are made up: they only have to be apart.
  leg.address = (std::uint64_t{1} << 40) + world.legs.size() * (std::uint64_t{1} << 24) +
                leg.range.offset % 4096;
  if (leg.range.size_bytes > 0) draw_runs(world, staged, leg);
  LegAccount account;
  account.transfer = transfer;
  account.leg = leg;
  account.memory.assign(leg.range.size_bytes, 0);
  account.moves.assign(leg.range.size_bytes, 0);
  world.legs.push_back(account);
  return leg;
}

// Writes own disjoint ranges of the files, so that what is written can be told apart.
drive::Leg draw_write_leg(World& world, std::uint32_t transfer, bool staged,
                          std::vector<std::uint64_t>& written) {
  auto leg = draw_leg(world, transfer, staged);
  const auto size = world.files[leg.file].planned_bytes;
  leg.range.offset = std::min(written[leg.file] + world.random.below(700), size);
  leg.range.size_bytes = world.random.below(size - leg.range.offset + 1);
  written[leg.file] = leg.range.offset + leg.range.size_bytes;
  if (leg.range.size_bytes > 0) draw_runs(world, staged, leg);
  auto& account = world.legs.back();
  account.leg = leg;
  account.moves.assign(leg.range.size_bytes, 0);
  account.memory.resize(leg.range.size_bytes);
  for (auto& byte : account.memory) byte = static_cast<std::uint8_t>(world.random.below(256));
  return leg;
}

}  // namespace

Drawn draw(World& world) {
  auto& random = world.random;
  Drawn drawn;
  world.direction = random.below(3) == 0 ? Direction::write : Direction::read;
  world.may_fall_back = random.below(4) != 0;
  draw_faults(world);
  draw_files(world);
  if (world.direction == Direction::write) {
    for (auto& file : world.files) file.size_bytes = file.planned_bytes;
  } else if (random.below(6) == 0) {
    drawn.shrink_ns = world.now_ns + random.below(4000);
  }
  std::vector<std::uint64_t> written(world.files.size(), 0);
  const auto transfers = 1 + random.below(3);
  for (std::uint32_t t = 0; t < transfers; ++t) {
    drive::TransferSpec spec;
    spec.direction = world.direction;
    spec.may_fall_back = world.may_fall_back;
    for (std::uint32_t f = 0; f < world.files.size(); ++f) {
      spec.files.push_back(
          {{static_cast<int>(f), static_cast<int>(f)}, "file " + std::to_string(f)});
    }
    spec.cache_steps = {16384, 32768};
    spec.look_up = [&world](int, const FileRange& range) { return draw_look(world, range); };
    const bool staged = random.below(2) == 0;
    const auto legs = 1 + random.below(random.below(4) == 0 ? 40 : 4);
    for (std::uint64_t i = 0; i < legs; ++i) {
      spec.legs.push_back(world.direction == Direction::write
                              ? draw_write_leg(world, t, staged, written)
                              : draw_leg(world, t, staged));
    }
    Interference interference;
    if (random.below(6) == 0) interference.cancel_ns = world.now_ns + random.below(4000);
    if (random.below(6) == 0) interference.deadline_ns = world.now_ns + 1 + random.below(4000);
    spec.deadline_ns = interference.deadline_ns;
    drawn.specs.push_back(std::move(spec));
    drawn.interferences.push_back(interference);
    world.transfers.emplace_back();
  }
  return drawn;
}

}  // namespace straightway::sim
