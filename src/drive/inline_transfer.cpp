#include "drive/inline_transfer.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <utility>

#include "drive/account.hpp"
#include "drive/verdict.hpp"
#include "transport/pinned_cache.hpp"

namespace straightway::drive {
namespace {

struct Move {
  const os::Syscalls& syscalls;
  const Plan& plan;
  const transport::FileRef& file;
  const std::string& path;
  bool may_fall_back;
  Receipt& receipt;
  std::uint64_t address;  // of the request's first byte, in host memory
  bool ended = false;

  // Moves one run; an error stops the transfer.
  std::optional<Error> run(const Run& planned);
};

std::optional<Error> Move::run(const Run& planned) {
  const auto direction = plan.request.direction;
  auto route = planned.route;
  bool direct_io = planned.direct_io;
  auto reason = planned.reason;
  FileRange left = planned.file;
  std::uint32_t attempts = 0;
  bool counted = false;  // as a segment of its route
  while (left.size_bytes > 0 && !ended) {
    auto* memory = reinterpret_cast<void*>(address + (left.offset - plan.request.file.offset));
    const int fd = direct_io ? file.direct_fd : file.fd;
    const auto result = direction == Direction::read
                            ? syscalls.pread(fd, memory, left.size_bytes, left.offset)
                            : syscalls.pwrite(fd, memory, left.size_bytes, left.offset);
    auto& share = receipt.routes[index(route)];
    if (result > 0) {
      share.bytes += static_cast<std::uint64_t>(result);
      if (!std::exchange(counted, true)) ++share.segments;
      if (share.reason == Reason::none || share.reason == Reason::edge_block) share.reason = reason;
    }
    auto verdict = judge(direction, result, left.size_bytes, direct_io, attempts);
    if (verdict == Verdict::fall_back && !may_fall_back) verdict = Verdict::fail;
    switch (verdict) {
      case Verdict::done:
        left.size_bytes = 0;
        break;
      case Verdict::rest:
        ++receipt.retries;
        attempts = 0;
        left.offset += static_cast<std::uint64_t>(result);
        left.size_bytes -= static_cast<std::uint64_t>(result);
        if (direct_io && left.offset % planned.align_bytes != 0) {
          direct_io = false;
          reason = Reason::edge_block;
          if (route == Route::direct_host) route = Route::buffered;
        }
        break;
      case Verdict::again:
        ++receipt.retries;
        ++attempts;
        break;
      case Verdict::end_of_file:
        ended = true;
        receipt.end_of_file = left.offset;
        break;
      case Verdict::fall_back:
        ++receipt.fallbacks;
        if (receipt.fallback_code == 0) receipt.fallback_code = static_cast<std::int32_t>(-result);
        direct_io = false;
        reason = Reason::fell_back;
        if (route == Route::direct_host) {
          receipt.refused[index(route)] = Reason::fell_back;
          route = Route::buffered;
        }
        break;
      case Verdict::fail: {
        const auto code = result < 0 ? static_cast<std::int32_t>(-result) : EIO;
        auto error = transfer_error(direction, path, left, code);
        if (direct_io && (code == EINVAL || code == EOPNOTSUPP)) {
          error.kind = ErrorKind::route_refused;
          error.why = "the file system refused O_DIRECT (" + error.why + ")";
          error.advice = "use policy auto, which falls back to the page cache";
        }
        return error;
      }
    }
  }
  return {};
}

// What one thread of the crew moves.
struct Part {
  Receipt receipt;
  std::optional<Error> error;
  bool ended = false;
};

// The plan's only run, in pieces that move at the same time. Those behind an error or the end of
// the file do not count.
std::optional<Error> move_in_parts(Move& move, Crew& crew) {
  const Run& run = move.plan.runs[0];
  const auto count =
      static_cast<std::uint32_t>((run.file.size_bytes + crew_piece_bytes - 1) / crew_piece_bytes);
  std::array<Part, crew_limit_bytes / crew_piece_bytes> parts;
  const auto move_part = [&](std::uint32_t i) {
    Part& part = parts[i];
    Run piece = run;
    piece.file.offset += i * crew_piece_bytes;
    piece.file.size_bytes = std::min(crew_piece_bytes, run.file.size_bytes - i * crew_piece_bytes);
    Move mine{move.syscalls,      move.plan,    move.file,   move.path,
              move.may_fall_back, part.receipt, move.address};
    part.error = mine.run(piece);
    part.ended = mine.ended;
  };
  if (!crew.run(count, std::ref(move_part))) return move.run(run);
  for (std::uint32_t i = 0; i < count && !move.ended; ++i) {
    for (const auto route : all_routes) {
      auto& share = move.receipt.routes[index(route)];
      const auto& moved = parts[i].receipt.routes[index(route)];
      share.bytes += moved.bytes;
      share.segments += moved.segments;
      if (share.reason == Reason::none) share.reason = moved.reason;
    }
    move.receipt.retries += parts[i].receipt.retries;
    move.receipt.end_of_file = parts[i].receipt.end_of_file;
    move.ended = parts[i].ended;
    if (parts[i].error) return parts[i].error;
  }
  move.receipt.threads = crew.helpers() + 1;
  return {};
}

// Moves the runs between the file and host memory at this address.
std::optional<Error> move_runs(Move move, Crew* crew) {
  std::optional<Error> error;
  const auto& plan = move.plan;
  move.receipt.threads = 1;
  if (crew != nullptr && plan.run_count == 1 && plan.runs[0].file.size_bytes <= crew_limit_bytes) {
    error = move_in_parts(move, *crew);
  } else {
    for (std::uint8_t i = 0; i < plan.run_count && !error && !move.ended; ++i) {
      error = move.run(plan.runs[i]);
    }
  }
  auto& receipt = move.receipt;
  receipt.wanted_bytes = plan.request.file.size_bytes;
  receipt.moved_bytes = 0;
  for (const auto route : all_routes) {
    auto& share = receipt.routes[index(route)];
    receipt.moved_bytes += share.bytes;
    share.evidence = own_evidence(route, plan.request.direction, share.bytes, -1);
  }
  return error;
}

}  // namespace

std::optional<Error> transfer_inline(const os::Syscalls& syscalls, const Plan& plan,
                                     const transport::FileRef& file, const std::string& path,
                                     bool may_fall_back, Crew* crew, Receipt& receipt) {
  return move_runs(
      {syscalls, plan, file, path, may_fall_back, receipt, plan.request.memory.address}, crew);
}

std::optional<Error> transfer_inline_device(const os::Syscalls& syscalls, const Plan& plan,
                                            const transport::FileRef& file, const std::string& path,
                                            memory::Desk& desk, std::optional<void*> stream,
                                            Crew* crew, Receipt& receipt) {
  const auto& request = plan.request;
  const auto copy = [&](std::uint64_t size_bytes) -> std::optional<Error> {
    if (size_bytes == 0) return {};
    auto copied = desk.copy(request.direction, request.memory.address, size_bytes, stream);
    if (copied) return {};
    auto error = copied.error();
    error.path = path;
    error.offset = request.file.offset;
    return error;
  };
  if (request.direction == Direction::write) {
    if (auto error = copy(request.file.size_bytes)) return error;
  }
  auto error = move_runs(
      {syscalls, plan, file, path, true, receipt, reinterpret_cast<std::uint64_t>(desk.data())},
      crew);
  if (!error && request.direction == Direction::read) error = copy(receipt.moved_bytes);
  receipt.pinned_bytes = desk.size_bytes();
  return error;
}

Result<bool> transfer_inline_pinned(const Plan& plan, const transport::FileRef& file,
                                    const std::string& path, memory::Desk& desk,
                                    std::optional<void*> stream, Receipt& receipt) {
  const auto& run = plan.runs[0];
  const auto& request = plan.request;
  if (!file.pins) return false;
  const auto address = request.memory.address + (run.file.offset - request.file.offset);
  auto copied = transport::copy_pinned(*file.pins, desk, run.file, address, stream);
  if (!copied) {
    auto error = copied.error();
    error.path = path;
    error.offset = run.file.offset;
    return error;
  }
  if (!*copied) return false;
  const auto bytes = run.file.size_bytes;
  receipt.moved_bytes = bytes;
  receipt.routes[index(Route::pinned_cache)] = {
      bytes, 1, run.reason, own_evidence(Route::pinned_cache, Direction::read, bytes, 0)};
  receipt.disk_measured = true;  // the pages are in memory
  receipt.threads = 1;
  return true;
}

}  // namespace straightway::drive
