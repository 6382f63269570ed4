// Small calls, on the caller's own thread.

#include <algorithm>
#include <utility>

#include "api/call.hpp"
#include "api/outcome.hpp"
#include "api/page_cache.hpp"
#include "api/peer_call.hpp"
#include "api/preallocation.hpp"
#include "api/second_descriptor.hpp"
#include "drive/inline_transfer.hpp"
#include "plan/runs.hpp"

namespace straightway {
namespace {

bool is_pinned(const Plan& plan) {
  return plan.run_count == 1 && plan.runs[0].route == Route::pinned_cache;
}

// A read that a crew shares: a single run through the page cache, which may keep it. One of more
// than crew_limit_bytes only into device memory.
bool wants_crew(const Plan& plan) {
  return plan.request.direction == Direction::read && plan.run_count == 1 &&
         !plan.runs[0].direct_io && !is_pinned(plan) &&
         plan.runs[0].file.size_bytes > drive::inline_limit_bytes &&
         (plan.runs[0].file.size_bytes <= drive::crew_limit_bytes ||
          plan.request.memory.space != SpaceKind::host) &&
         (plan.runs[0].cold == ColdWay::same || plan.runs[0].cold == ColdWay::kept);
}

// Whether the caller's own thread does it: small, nobody watches, and of device memory all through
// the page cache, or all pinned.
bool runs_inline(const CallRange& range, const Plan& plan, const CallOptions& options) {
  if (options.on_progress || options.deadline) return false;
  if (is_pinned(plan)) return range.size_bytes <= drive::pinned_inline_limit_bytes;
  const bool is_write = plan.request.direction == Direction::write;
  if ((is_write && ends_behind_limit({range.offset, range.size_bytes})) ||
      (range.size_bytes > drive::inline_limit_bytes && !wants_crew(plan))) {
    return false;
  }
  if (plan.request.memory.space == SpaceKind::host) return true;
  return std::all_of(plan.runs.begin(), plan.runs.begin() + plan.run_count,
                     [](const Run& run) { return run.route == Route::staged && !run.direct_io; });
}

// Whether the page cache has every page that the request touches.
bool is_cached(const os::Syscalls& syscalls, int fd, const Plan& plan) {
  const auto& range = plan.request.file;
  const std::uint64_t page_bytes = plan::machine_of(plan).page_bytes;
  const auto begin = range.offset / page_bytes * page_bytes;
  const auto end = (range.offset + range.size_bytes + page_bytes - 1) / page_bytes * page_bytes;
  const auto look = look_at_cache(syscalls, fd, {begin, end - begin});
  return plan::residency_of(look, end - begin) == plan::Residency::hot;
}

// Moves the plan's bytes on this thread. Empty: the pump does it better (see windows_limit_bytes),
// all desks of the device are taken, the user's stream would be waited for, or the pin that was
// planned with is gone.
std::optional<Result<void>> move_inline(Engine& engine, const Plan& plan,
                                        const transport::FileRef& ref, const CallOptions& options,
                                        StreamWait stream_wait, Receipt& receipt) {
  const auto outcome = [](std::optional<Error> error) -> Result<void> {
    if (error) return std::move(*error);
    return {};
  };
  const auto& memory = plan.request.memory;
  drive::Sharing sharing(wants_crew(plan) ? &engine.crew() : nullptr);
  if (sharing.crew != nullptr) {
    const bool is_large = plan.request.file.size_bytes > drive::crew_limit_bytes;
    // Beside the pump's copiers the crew would only take their CPUs.
    if (is_large && !engine.pump_is_idle()) return {};
    const bool cached = is_cached(engine.syscalls(), ref.fd, plan);
    if (is_large && !cached) return {};  // the pump has more ways to read it
    if (cached) sharing.piece_bytes = drive::cached_piece_bytes;
  }
  if (memory.space == SpaceKind::host) {
    return outcome(drive::transfer_inline(engine.syscalls(), plan, ref, plan.file->path,
                                          may_fall_back(plan), sharing, receipt));
  }
  // Pinned bytes do not lie on the desk.
  const auto size_bytes =
      is_pinned(plan) ? 1 : std::min(plan.request.file.size_bytes, drive::crew_desk_bytes);
  auto desk = engine.take_desk(memory.device, size_bytes);
  if (!desk || !*desk) return {};  // the pump's way says what is wrong
  const auto stream =
      options.stream ? std::optional<void*>(options.stream->handle) : std::optional<void*>();
  std::optional<Error> error;
  bool stood = stream_wait == StreamWait::yes || (*desk)->is_idle(stream);
  if (!stood) {
    // nothing was begun
  } else if (is_pinned(plan)) {
    const auto moved =
        drive::transfer_inline_pinned(plan, ref, plan.file->path, **desk, stream, receipt);
    if (!moved) error = moved.error();
    stood = !moved || *moved;
  } else {
    error = drive::transfer_inline_device(engine.syscalls(), plan, ref, plan.file->path, **desk,
                                          stream, sharing, receipt);
  }
  if (error && error->origin == ErrorOrigin::cuda) desk->reset();
  engine.give_desk(memory.device, size_bytes, std::move(*desk));
  if (!stood) return {};
  return outcome(std::move(error));
}

std::optional<Result<Receipt>> finish_inline(const CallRange& range, const Plan& plan,
                                             const CallOptions& options, StreamWait stream_wait,
                                             std::uint64_t queued_ns) {
  auto receipt = begin_receipt(plan, queued_ns);
  count_refused_direct(receipt, plan, *range.file);
  auto& engine = *range.file->engine;
  const auto ref = range.file->ref(uses_direct(plan));
  receipt.times.started_ns = queued_ns;
  const auto moved = move_inline(engine, plan, ref, options, stream_wait, receipt);
  if (!moved) return {};
  std::optional<Error> error;
  if (!*moved) error = moved->error();
  if (!error && options.sync != Sync::none && plan.request.direction == Direction::write) {
    auto synced = sync_file(engine.syscalls(), *range.file, options.sync, ref.fd);
    if (!synced) error = synced.error();
  }
  receipt.times.done_ns = drive::now_ns();
  receipt.times.first_byte_ns = receipt.moved_bytes > 0 ? receipt.times.done_ns : 0;
  if (error) {
    engine.record_error(plan.request.direction);
    return Result<Receipt>(std::move(*error));
  }
  if (plan.request.direction == Direction::read && receipt.moved_bytes < receipt.wanted_bytes) {
    receipt.ended_early = true;
    if (receipt.moved_bytes > 0) receipt.end_of_file = receipt.file_offset + receipt.moved_bytes;
    if (receipt.moved_bytes == 0) {
      receipt.end_of_file = range.file->size().ok() ? *range.file->size() : receipt.file_offset;
    }
  }
  engine.record(receipt);
  if (!options.exact && plan.settings->evidence.value == Demand::any) {
    return Result<Receipt>(std::move(receipt));
  }
  return judge_receipt(std::move(receipt), options);
}

// planned: what was planned, also where it is not done here.
std::optional<Result<Receipt>> try_small(Direction direction, const CallRange& range,
                                         const CallOptions& options, StreamWait stream_wait,
                                         std::optional<Plan>& planned) {
  if (range.size_bytes > drive::windows_limit_bytes) return {};
  if (may_be_peer(range)) return {};
  const auto queued_ns = drive::now_ns();
  auto plan = plan_call(direction, range, call_settings(range.file->settings, options));
  if (!plan) return {};
  planned = std::move(*plan);
  if (planned->failure != Reason::none || !runs_inline(range, *planned, options)) return {};
  if (!secure_direct(*planned, *range.file)) return {};
  return finish_inline(range, *planned, options, stream_wait, queued_ns);
}

}  // namespace

std::optional<Result<Receipt>> run_small(Direction direction, const CallRange& range,
                                         const CallOptions& options, StreamWait stream_wait) {
  std::optional<Plan> planned;
  return try_small(direction, range, options, stream_wait, planned);
}

Result<Receipt> run_one(Direction direction, CallRange range, const CallOptions& options) {
  std::optional<Plan> planned;
  if (auto receipt = try_small(direction, range, options, StreamWait::yes, planned)) {
    return std::move(*receipt);
  }
  auto ranges = only(std::move(range));
  // Pins may be gone since: that is why it was not done.
  if (planned && planned->pin_bytes == 0) ranges.planned = std::move(planned);
  return run_call(direction, std::move(ranges), options);
}

}  // namespace straightway
