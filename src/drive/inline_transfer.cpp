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

// A run of up to crew_limit_bytes, in pieces that move at the same time. Those behind an error or
// the end of the file do not count. meanwhile: as Crew::run's.
std::optional<Error> move_in_parts(Move& move, const Sharing& sharing, const Run& run,
                                   const std::function<void()>& meanwhile = {}) {
  const auto piece_bytes = sharing.piece_bytes;
  const auto count =
      static_cast<std::uint32_t>((run.file.size_bytes + piece_bytes - 1) / piece_bytes);
  std::array<Part, crew_limit_bytes / cached_piece_bytes> parts;
  const auto move_part = [&](std::uint32_t i) {
    Part& part = parts[i];
    Run piece = run;
    piece.file.offset += i * piece_bytes;
    piece.file.size_bytes = std::min(piece_bytes, run.file.size_bytes - i * piece_bytes);
    Move mine{move.syscalls,      move.plan,    move.file,   move.path,
              move.may_fall_back, part.receipt, move.address};
    part.error = mine.run(piece);
    part.ended = mine.ended;
  };
  if (!sharing.crew->run(count, std::ref(move_part), meanwhile)) {
    if (meanwhile) meanwhile();
    return move.run(run);
  }
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
  move.receipt.threads = sharing.crew->helpers() + 1;
  return {};
}

// Takes bytes of host memory to where they belong in the request.
using Take = std::function<std::optional<Error>(std::uint64_t at, std::uint64_t address,
                                                std::uint64_t size_bytes)>;

std::uint64_t moved_bytes(const Receipt& receipt) {
  std::uint64_t sum = 0;
  for (const auto route : all_routes) sum += receipt.routes[index(route)].bytes;
  return sum;
}

// The plan's only run, in windows that lie by turns in the two halves of the host memory: one is
// taken while the crew fills the other. Each is taken before its half is filled again.
std::optional<Error> move_in_windows(Move& move, const Sharing& sharing, const Take& take) {
  const auto base = move.address;
  const FileRange whole = move.plan.runs[0].file;
  std::uint64_t at = 0, filled = 0;
  std::optional<Error> error, not_taken;
  // of the window that was filled last
  std::uint64_t last_at = 0, last_address = base;
  const auto take_last = [&] {
    if (filled > 0) not_taken = take(last_at, last_address, filled);
  };
  for (; at < whole.size_bytes && !move.ended && !error && !not_taken; at += crew_limit_bytes) {
    Run window = move.plan.runs[0];
    window.file = {whole.offset + at, std::min(crew_limit_bytes, whole.size_bytes - at)};
    const auto address = base + at / crew_limit_bytes % 2 * crew_limit_bytes;
    move.address = address - at;
    const auto before = moved_bytes(move.receipt);
    error = move_in_parts(move, sharing, window, std::ref(take_last));
    last_at = at;
    last_address = address;
    filled = moved_bytes(move.receipt) - before;
  }
  if (!error && !not_taken) take_last();
  return not_taken ? not_taken : error;
}

// Moves the runs between the file and host memory at this address, and from there, where they are
// read, by take.
std::optional<Error> move_runs(Move move, const Sharing& sharing, const Take& take = {}) {
  std::optional<Error> error;
  const auto& plan = move.plan;
  const auto address = move.address;
  const bool in_windows =
      take && sharing.crew != nullptr && plan.runs[0].file.size_bytes > crew_limit_bytes;
  move.receipt.threads = 1;
  if (in_windows) {
    error = move_in_windows(move, sharing, take);
  } else if (sharing.crew != nullptr && plan.run_count == 1 &&
             plan.runs[0].file.size_bytes <= crew_limit_bytes) {
    error = move_in_parts(move, sharing, plan.runs[0]);
  } else {
    for (std::uint8_t i = 0; i < plan.run_count && !error && !move.ended; ++i) {
      error = move.run(plan.runs[i]);
    }
  }
  const auto moved = moved_bytes(move.receipt);
  if (!in_windows && take && !error && moved > 0) error = take(0, address, moved);
  auto& receipt = move.receipt;
  receipt.wanted_bytes = plan.request.file.size_bytes;
  receipt.moved_bytes = moved;
  for (const auto route : all_routes) {
    auto& share = receipt.routes[index(route)];
    share.evidence = own_evidence(route, plan.request.direction, share.bytes, -1);
  }
  return error;
}

}  // namespace

std::optional<Error> transfer_inline(const os::Syscalls& syscalls, const Plan& plan,
                                     const transport::FileRef& file, const std::string& path,
                                     bool may_fall_back, Sharing sharing, Receipt& receipt) {
  return move_runs(
      {syscalls, plan, file, path, may_fall_back, receipt, plan.request.memory.address}, sharing);
}

std::optional<Error> transfer_inline_device(const os::Syscalls& syscalls, const Plan& plan,
                                            const transport::FileRef& file, const std::string& path,
                                            memory::Desk& desk, std::optional<void*> stream,
                                            Sharing sharing, Receipt& receipt) {
  const auto& request = plan.request;
  const auto checked = [&](const Result<void>& copied, std::uint64_t at) -> std::optional<Error> {
    if (copied) return {};
    auto error = copied.error();
    error.path = path;
    error.offset = request.file.offset + at;
    return error;
  };
  const auto to_device = [&](std::uint64_t at, std::uint64_t address, std::uint64_t size_bytes) {
    return checked(desk.copy_held(request.memory.address + at,
                                  reinterpret_cast<std::byte*>(address), size_bytes, stream),
                   at);
  };
  const bool is_read = request.direction == Direction::read;
  if (!is_read && request.file.size_bytes > 0) {
    auto copied =
        desk.copy(Direction::write, request.memory.address, request.file.size_bytes, stream);
    if (auto error = checked(copied, 0)) return error;
  }
  auto error = move_runs(
      {syscalls, plan, file, path, true, receipt, reinterpret_cast<std::uint64_t>(desk.data())},
      sharing, is_read ? Take(std::cref(to_device)) : Take());
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
