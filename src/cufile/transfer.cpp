#include "cufile/transfer.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <limits>
#include <system_error>
#include <thread>
#include <utility>

#include "api/engine.hpp"
#include "cufile/userspace.hpp"
#include "plan/cut.hpp"
#include "plan/planner.hpp"

namespace straightway::cufile {
namespace {

constexpr std::uint64_t block_bytes = 4096;
constexpr std::size_t largest_size = std::numeric_limits<ssize_t>::max();

bool may_move(int access, Direction direction) {
  return access == O_RDWR || access == (direction == Direction::read ? O_RDONLY : O_WRONLY);
}

// The range as the caller means it, in the memory that it names. The base and the range must lie in
// one allocation; without an offset, the transfer's own look at the pointer finds that out.
std::optional<Outcome> check_unregistered(const Session& session, const Transfer& transfer) {
  if (transfer.memory_offset == 0) return std::nullopt;
  Engine& engine = *session.context->engine();
  const auto offset = static_cast<std::uint64_t>(transfer.memory_offset);
  const auto fits = [&](std::uint64_t size_bytes) {
    return engine.find_memory({transfer.base, size_bytes}, size_bytes).ok();
  };
  if (!fits(offset + 1)) return fail_with(EIO);
  if (!fits(offset + transfer.size)) return fail_with(EPERM);
  return std::nullopt;
}

std::optional<Outcome> check_ranges(const Session& session, const Transfer& transfer,
                                    const std::optional<MemoryRange>& registered) {
  if (transfer.size > largest_size) return fail_with(abi::invalid_mapping_range);
  if (transfer.file_offset < 0) return fail_with(abi::invalid_value);
  // Without a registration the vendor's library obeys it, and writes in front of the memory.
  if (transfer.memory_offset < 0) return fail_with(abi::internal_error);
  const auto offset = static_cast<std::uint64_t>(transfer.memory_offset);
  if (registered) {
    const bool inside =
        offset <= registered->size_bytes && transfer.size <= registered->size_bytes - offset;
    if (!inside) return fail_with(abi::invalid_mapping_range);
  } else if (transfer.size > 0) {
    return check_unregistered(session, transfer);
  }
  return std::nullopt;
}

// A graph capture that is under way forbids the look at the default stream; the vendor's library
// does not look there at all.
bool is_refused_order(const Error& error) {
  return error.attempted.starts_with("order a transfer after");
}

// Empty where the file is closed.
std::optional<CallRange> range_for(const Handle& handle, const Checked& checked) {
  FileUse use(handle.file);
  if (!use) return std::nullopt;
  return CallRange{std::move(use),
                   checked.offset,
                   checked.memory.size_bytes,
                   checked.memory,
                   checked.registered.has_value(),
                   checked.ordered};
}

Result<Receipt> move_once(const Handle& handle, Direction direction, const Checked& checked) {
  auto range = range_for(handle, checked);
  if (!range) return closed_error(direction, handle.file->facts->path);
  return run_one(direction, std::move(*range), {});
}

Result<Receipt> move(const Handle& handle, const Transfer& transfer, const Checked& checked) {
  auto receipt = move_once(handle, transfer.direction(), checked);
  if (receipt || !checked.ordered || !is_refused_order(receipt.error())) return receipt;
  Checked unordered = checked;
  unordered.ordered = false;
  return move_once(handle, transfer.direction(), unordered);
}

std::optional<MemoryRange> find_device_memory(const Session& session, const Memory& memory) {
  auto found = session.context->engine()->find_memory(memory, 1);
  if (!found || found->space == SpaceKind::host) return std::nullopt;
  return *found;
}

Outcome outcome_of_error(const Session& session, const Checked& checked, const Error& error) {
  const bool was_device = checked.registered && checked.registered->space == SpaceKind::cuda;
  if (was_device && !find_device_memory(session, checked.memory)) {
    return fail_with(abi::invalid_value);  // registered, and freed since
  }
  if (error.origin == ErrorOrigin::cuda || error.kind == ErrorKind::device ||
      error.kind == ErrorKind::forked) {
    return {-abi::cuda_driver_error, 0};
  }
  if (error.kind == ErrorKind::closed) return fail_with(abi::handle_not_registered);
  if (error.origin == ErrorOrigin::system && error.code != 0) {
    const bool own_fault = error.code == EFAULT || error.code == EBADF;
    return fail_with(own_fault ? EPERM : error.code);
  }
  if (error.kind == ErrorKind::invalid_argument) return fail_with(EPERM);
  if (error.kind == ErrorKind::route_refused) return fail_with(abi::io_not_supported);
  return fail_with(error.kind == ErrorKind::out_of_memory ? ENOMEM : EIO);
}

Outcome outcome_of(const Session& session, const Checked& checked, const Result<Receipt>& result) {
  if (result) return {static_cast<ssize_t>(result->moved_bytes), 0};
  return outcome_of_error(session, checked, result.error());
}

// The parts whose offset, length or place in memory is no multiple of a block.
std::uint64_t unaligned_parts(const Transfer& transfer, const Receipt& receipt,
                              const CufileSettings& settings, bool registered) {
  const FileRange range{static_cast<std::uint64_t>(transfer.file_offset), transfer.size};
  const Cut parts = plan::cufile_parts(range, receipt.memory.space, registered, settings);
  const auto memory_offset = static_cast<std::uint64_t>(transfer.memory_offset);
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < parts.count; ++i) {
    const FileRange part = parts.piece(i);
    const std::uint64_t in_memory = memory_offset + (part.offset - range.offset);
    count += (part.offset | part.size_bytes | in_memory) % block_bytes != 0 ? 1 : 0;
  }
  return count;
}

// The way of a request, with its reason.
void log_way(Session& session, const Transfer& transfer, const Receipt& receipt) {
  if (!session.log.wants(LogLevel::debug)) return;
  for (const Route route : all_routes) {
    const RouteShare& share = receipt.routes[index(route)];
    if (share.bytes == 0) continue;
    session.log.write(
        LogLevel::debug,
        fmt::format("{} {} bytes at {}: {} bytes by {} ({}): {}", to_string(transfer.direction()),
                    transfer.size, transfer.file_offset, share.bytes, to_string(route),
                    to_string(share.evidence.kind),
                    plan::sentence(share.reason, route, receipt.file.get(), receipt.machine.get(),
                                   receipt.settings.get())));
  }
  if (receipt.memory.space != SpaceKind::cuda) return;
  for (const Route route : {Route::nvfs, Route::p2pdma}) {
    const Reason refused = receipt.refused[index(route)];
    const bool asked = route == Route::nvfs || receipt.settings->cufile.use_pci_p2pdma.value;
    if (refused == Reason::none || !asked) continue;
    session.log.write(LogLevel::debug,
                      fmt::format("not {}: {}", to_string(route),
                                  plan::sentence(refused, route, receipt.file.get(),
                                                 receipt.machine.get(), receipt.settings.get())));
  }
}

void log_result(Session& session, const Transfer& transfer, const Result<Receipt>& result) {
  if (result) return log_way(session, transfer, *result);
  session.log.write(LogLevel::error, result.error().message());
}

// What a submitted transfer keeps until it is over.
struct Pending {
  Session& session;
  std::shared_ptr<Handle> handle;
  Transfer transfer;
  Checked checked;
  Done done;

  void end(const Outcome& outcome, const Receipt* receipt, bool cancelled) const {
    count(session, counted(session, transfer, &checked, outcome, receipt));
    done(outcome, cancelled);
  }
  void end(const Result<Receipt>& result) const {
    const bool cancelled = !result && result.error().kind == ErrorKind::cancelled;
    if (!cancelled) log_result(session, transfer, result);
    end(outcome_of(session, checked, result), result ? &*result : nullptr, cancelled);
  }
};

void run_userspace_apart(const std::shared_ptr<Pending>& pending) {
  const auto work = [pending] {
    Outcome outcome;
    try {  // the program's own functions: what they throw has nowhere to go from this thread
      outcome =
          move_userspace(pending->session, *pending->handle, pending->transfer, pending->checked);
    } catch (const std::exception&) {
      outcome = fail_with(EIO);
    }
    pending->end(outcome, nullptr, false);
  };
  try {
    std::thread(work).detach();
  } catch (const std::system_error&) {
    work();
  }
}

}  // namespace

abi::Code code_of(const Outcome& failed) {
  const std::int64_t code = failed.result == -1 ? failed.error_number : -failed.result;
  return code > 5000 && code < 6000 ? static_cast<abi::Code>(code) : abi::io_error;
}

std::optional<Outcome> check(const Session& session, const Handle& handle, const Transfer& transfer,
                             Checked& checked) {
  if (transfer.base == nullptr) return fail_with(EINVAL);
  checked.registered = session.buffers.find(transfer.base);
  if (auto failed = check_ranges(session, transfer, checked.registered)) return failed;
  if (!may_move(handle.access, transfer.direction())) {
    return fail_with(abi::invalid_file_open_flag);
  }
  checked.memory = {static_cast<char*>(transfer.base) + transfer.memory_offset, transfer.size};
  checked.offset = static_cast<std::uint64_t>(transfer.file_offset);
  checked.ordered = session.ordered;
  if (!session.config.flag(Key::allow_system_memory) && transfer.size > 0 &&
      !find_device_memory(session, checked.memory)) {
    return fail_with(abi::cuda_memory_type_invalid);
  }
  return std::nullopt;
}

CountedCall counted(const Session& session, const Transfer& transfer, const Checked* checked,
                    const Outcome& outcome, const Receipt* receipt) {
  CountedCall call;
  call.flow = transfer.flow;
  call.requested_bytes = transfer.size;
  call.failed = outcome.result < 0;
  if (receipt == nullptr || !session.statistics.counting()) return call;
  call.duration_us = (receipt->times.done_ns - receipt->times.queued_ns) / 1000;
  call.empty_read = transfer.size > 0 && outcome.result == 0;
  call.device = receipt->memory.space == SpaceKind::cuda ? receipt->memory.device : -1;
  call.parts = receipt->layer;
  call.pooled_parts = call.parts.n > 1 ? call.parts.n - 1 : 0;
  if (call.device >= 0) {
    call.unaligned_parts = unaligned_parts(transfer, *receipt, receipt->settings->cufile,
                                           checked->registered.has_value());
  }
  return call;
}

void count(Session& session, const CountedCall& call) {
  if (!session.statistics.counting() || session.context->engine()->is_forked_child()) return;
  if (call.device >= 0) session.show_gpus();
  session.statistics.count(call);
}

Outcome run_uncounted(Session& session, const Handle& handle, const Transfer& transfer,
                      CountedCall& whole) {
  Checked checked;
  if (auto failed = check(session, handle, transfer, checked)) return *failed;
  CountedCall call;
  Outcome outcome;
  if (handle.userspace) {
    outcome = move_userspace(session, handle, transfer, checked);
    call = counted(session, transfer, nullptr, outcome, nullptr);
  } else {
    const auto receipt = move(handle, transfer, checked);
    outcome = outcome_of(session, checked, receipt);
    log_result(session, transfer, receipt);
    call = counted(session, transfer, &checked, outcome, receipt ? &*receipt : nullptr);
  }
  whole.requested_bytes += call.requested_bytes;
  whole.duration_us += call.duration_us;
  whole.empty_read |= call.empty_read;
  if (call.device >= 0) whole.device = call.device;
  whole.parts.n += call.parts.n;
  whole.parts.nvfs += call.parts.nvfs;
  whole.parts.p2pdma += call.parts.p2pdma;
  whole.parts.posix += call.parts.posix;
  whole.unaligned_parts += call.unaligned_parts;
  whole.pooled_parts += call.pooled_parts;
  return outcome;
}

Outcome run(Session& session, const Handle& handle, const Transfer& transfer) {
  CountedCall call;
  call.flow = transfer.flow;
  const Outcome outcome = run_uncounted(session, handle, transfer, call);
  call.failed = outcome.result < 0;
  count(session, call);
  return outcome;
}

Job submit(Session& session, const std::shared_ptr<Handle>& handle, const Transfer& transfer,
           bool ordered, Done done) {
  auto pending = std::make_shared<Pending>(Pending{session, handle, transfer, {}, std::move(done)});
  Checked& checked = pending->checked;
  if (auto failed = check(session, *handle, transfer, checked)) {
    pending->end(*failed, nullptr, false);
    return {};
  }
  checked.ordered = checked.ordered && ordered;
  if (handle->userspace) {
    run_userspace_apart(pending);
    return {};
  }
  auto range = range_for(*handle, checked);
  if (!range) {
    pending->end(Result<Receipt>(closed_error(transfer.direction(), handle->file->facts->path)));
    return {};
  }
  auto job = submit_call(transfer.direction(), only(std::move(*range)), {}, nullptr);
  if (!job) {
    pending->end(Result<Receipt>(job.error()));
    return {};
  }
  job->on_done([pending, job = *job] { pending->end(job.result()); });
  return *job;
}

}  // namespace straightway::cufile
