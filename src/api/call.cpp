#include "api/call.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>
#include <utility>

#include "api/job.hpp"
#include "api/outcome.hpp"
#include "api/page_cache.hpp"
#include "api/peer_call.hpp"
#include "api/preallocation.hpp"
#include "api/second_descriptor.hpp"
#include "api/vendor_call.hpp"
#include "drive/inline_transfer.hpp"
#include "os/memory_access.hpp"
#include "plan/planner.hpp"
#include "plan/runs.hpp"

namespace straightway {
namespace {

constexpr std::uint64_t largest_offset = std::numeric_limits<std::int64_t>::max();

Error argument_error(Direction direction, const std::string& path, std::uint64_t offset,
                     std::string why, std::string advice) {
  return {ErrorKind::invalid_argument,
          ErrorOrigin::straightway,
          0,
          to_string(direction),
          path,
          offset,
          std::move(why),
          std::move(advice)};
}

Result<void> check_offsets(Direction direction, const CallRange& range) {
  const auto& path = range.file->facts->path;
  if (range.offset > largest_offset || range.size_bytes > largest_offset ||
      range.offset + range.size_bytes > largest_offset) {
    return argument_error(direction, path, range.offset,
                          "offset and size end beyond 2^63 - 1, or are negative",
                          "give an offset and a size within the file");
  }
  return {};
}

Result<void> check_range(Direction direction, const CallRange& range) {
  const auto& path = range.file->facts->path;
  if (range.size_bytes > range.memory.size_bytes) {
    return argument_error(direction, path, range.offset,
                          "the size is " + std::to_string(range.size_bytes) +
                              " bytes and the memory has " +
                              std::to_string(range.memory.size_bytes),
                          "give a larger memory, or a smaller size");
  }
  const auto address = reinterpret_cast<std::uint64_t>(range.memory.address);
  if (range.size_bytes > 0 && address == 0) {
    return argument_error(direction, path, range.offset, "the memory's address is null",
                          "give allocated memory");
  }
  if (range.memory.size_bytes > std::numeric_limits<std::uint64_t>::max() - address) {
    return argument_error(direction, path, range.offset, "the memory ends beyond the address space",
                          "check address and size");
  }
  return range.file->allows(direction);
}

// A write from memory that is not there could lengthen the file before the kernel finds out. Memory
// with a hole in its middle passes.
Result<void> check_source(const CallRange& range) {
  if (range.size_bytes == 0 || os::is_readable(range.memory.address, range.size_bytes)) return {};
  auto error = argument_error(Direction::write, range.file->facts->path, range.offset,
                              "the memory at the address given cannot be accessed",
                              "give memory that is allocated, of the whole size");
  error.origin = ErrorOrigin::system;
  error.code = EFAULT;
  return error;
}

// A call that is checked and planned.
struct Prepared {
  std::vector<CallRange> ranges;
  std::vector<Plan> plans;
  CallOptions options;
  std::uint64_t queued_ns = 0;
  std::shared_ptr<memory::Mark> queued_work;  // of the user's stream; the transfer comes after it
  Preallocation preallocated;                 // of a single range
  std::optional<VendorLook> vendor;

  Engine& engine() const { return *ranges.front().file->engine; }
  const Plan& first() const { return plans.front(); }
  Direction direction() const { return first().request.direction; }
  std::optional<Error> check_spaces() const;
  void preallocate();
  void undo_preallocation() const;
  Result<Receipt> conclude(Receipt receipt, std::optional<Error> error) const;
  std::optional<drive::TransferSpec> spec() const;
  std::shared_ptr<const RangeTable> untouched_ranges() const;
};

// The table of a call that has nothing to move.
std::shared_ptr<const RangeTable> Prepared::untouched_ranges() const {
  auto table = std::make_shared<RangeTable>();
  for (const auto& plan : plans) {
    table->offset.push_back(plan.request.file.offset);
    table->wanted_bytes.push_back(plan.request.file.size_bytes);
    table->moved_bytes.push_back(0);
  }
  return table;
}

// All memories of a call lie in one space.
std::optional<Error> Prepared::check_spaces() const {
  const auto& memory = first().request.memory;
  for (const auto& plan : plans) {
    const auto& other = plan.request.memory;
    if (other.size_bytes == 0 || memory.size_bytes == 0 ||
        (other.space == memory.space && other.device == memory.device)) {
      continue;
    }
    return argument_error(direction(), plan.file->path, plan.request.file.offset,
                          "the ranges lie in different memories",
                          "make one call for each GPU, and one for host memory");
  }
  return {};
}

// After the transfer: durability, then what the caller demanded, then the ledger.
Result<Receipt> Prepared::conclude(Receipt receipt, std::optional<Error> error) const {
  if (error) undo_preallocation();  // not where all was written and only what follows failed
  for (std::size_t i = 0; i < ranges.size() && !error && direction() == Direction::write; ++i) {
    if (i > 0 && ranges[i].file.get() == ranges[i - 1].file.get()) continue;
    auto synced = sync_file(engine().syscalls(), *ranges[i].file, options.sync,
                            ranges[i].file->ref(false).fd);
    if (!synced) error = synced.error();
  }
  receipt.times.done_ns = drive::now_ns();
  learn_of_peers(ranges, plans, receipt, error);
  learn_of_vendor(ranges, plans, receipt, error);
  if (!error && vendor) {
    if (auto judged = judge_vendor(ranges, *vendor, receipt); !judged) error = judged.error();
  }
  if (error) {
    engine().record_error(direction());
    return *error;
  }
  judge_peers(plans, receipt);
  const auto file_size = first().request.file_size_bytes;
  receipt.ended_early =
      direction() == Direction::read && receipt.moved_bytes < receipt.wanted_bytes;
  if (receipt.ended_early && ranges.size() == 1 && file_size > 0 &&
      file_size < receipt.end_of_file) {
    receipt.end_of_file = file_size;  // the read began behind the end
  }
  engine().record(receipt);
  return judge_receipt(std::move(receipt), options);
}

// Of one range: among many there may be wide holes, which are to stay holes.
void Prepared::preallocate() {
  const auto& request = first().request;
  if (ranges.size() != 1 || direction() == Direction::read || !uses_direct(first()) ||
      request.file.size_bytes <= plan::direct_segment_bytes) {
    return;
  }
  preallocated = straightway::preallocate(engine().syscalls(), ranges.front().file->ref(false).fd,
                                          request.file_size_bytes, request.file);
}

void Prepared::undo_preallocation() const {
  undo(engine().syscalls(), ranges.front().file->ref(false).fd, preallocated, first().request.file);
}

// Empty where there is nothing to move.
std::optional<drive::TransferSpec> Prepared::spec() const {
  drive::TransferSpec spec;
  spec.direction = direction();
  spec.may_fall_back = may_fall_back(first());
  if (options.deadline) {
    spec.deadline_ns = queued_ns + static_cast<std::uint64_t>(options.deadline->count());
  }
  bool any = false;
  const OpenFile* last = nullptr;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto& plan = plans[i];
    const bool direct = uses_direct(plan);
    if (ranges[i].file.get() != last) {
      last = ranges[i].file.get();
      spec.files.push_back({ranges[i].file->ref(direct), plan.file->path});
    } else if (direct) {
      spec.files.back().ref = ranges[i].file->ref(true);
    }
    spec.legs.push_back({plan.request.file, plan.request.memory.address,
                         static_cast<std::uint32_t>(spec.files.size() - 1), plan.run_count,
                         plan.runs});
    any |= plan.run_count > 0;
  }
  if (!any) return {};
  use_page_cache(spec, engine().syscalls());
  return spec;
}

Result<Prepared> prepare(Direction direction, std::vector<CallRange> ranges,
                         const CallOptions& options) {
  Prepared prepared;
  prepared.queued_ns = drive::now_ns();
  prepared.options = options;
  if (options.deadline && options.deadline->count() <= 0) {
    return argument_error(direction, ranges.front().file->facts->path, ranges.front().offset,
                          "the deadline is not in the future", "give a time above zero");
  }
  const auto settings = call_settings(ranges.front().file->settings, options);
  prepared.plans.reserve(ranges.size());
  std::uint64_t largest_bytes = 0;
  for (const auto& range : ranges) largest_bytes = std::max(largest_bytes, range.size_bytes);
  auto spare_bytes = spare_memory(direction, largest_bytes, *settings);
  for (auto& range : ranges) {
    if (auto found = find_peer(range); !found) return found.error();
    auto plan = plan_call(direction, range, settings, nullptr, spare_bytes);
    if (spare_bytes != UINT64_MAX) spare_bytes -= std::min(spare_bytes, range.size_bytes);
    if (plan) try_peer(*plan, range);
    if (plan) try_vendor(*plan, range);
    if (!plan) return plan.error();
    if (plan->failure != Reason::none) return refusal(*plan);
    if (auto secured = secure_direct(*plan, *range.file); !secured) return secured.error();
    prepared.plans.push_back(std::move(*plan));
  }
  prepared.ranges = std::move(ranges);
  if (auto error = prepared.check_spaces()) return *error;
  prepared.vendor = look_before(prepared.ranges, prepared.plans);
  const auto& memory = prepared.first().request.memory;
  const bool ordered = prepared.ranges.front().ordered;
  if (memory.space == SpaceKind::cuda && memory.size_bytes > 0 && ordered) {
    auto mark = prepared.engine().mark_stream(memory.device, options.stream);
    if (!mark) return mark.error();
    prepared.queued_work = std::move(*mark);
  }
  prepared.preallocate();
  return prepared;
}

std::shared_ptr<Job::State> new_state(const Prepared& prepared, std::shared_ptr<void> owner) {
  auto state = std::make_shared<Job::State>();
  state->engine = prepared.ranges.front().file->engine;
  state->generation = prepared.engine().generation();
  state->owner = std::move(owner);
  for (const auto& plan : prepared.plans) state->wanted_bytes += plan.request.file.size_bytes;
  return state;
}

// Lets go of the files, then tells whoever waits. Needs no memory.
void end(Job::State& state, std::shared_ptr<Prepared>& prepared, Result<Receipt> outcome) {
  state.settle(std::move(outcome), [&] { prepared->ranges.clear(); });
  prepared.reset();  // before anybody is told: whoever waits may then end the Context
  state.tell();
}

Receipt account(const Prepared& prepared, const drive::Drained& what) {
  auto receipt = begin_receipt(prepared.first(), prepared.queued_ns);
  for (std::size_t i = 0; i < prepared.plans.size(); ++i) {
    count_refused_direct(receipt, prepared.plans[i], *prepared.ranges[i].file);
  }
  if (what.transfer != nullptr) what.transfer->account(receipt);
  receipt.threads = what.threads;
  receipt.pinned_bytes = what.pinned_bytes;
  return receipt;
}

Result<Receipt> try_conclude(const Prepared& prepared, Receipt receipt,
                             std::optional<Error> error) {
  try {
    return prepared.conclude(std::move(receipt), std::move(error));
  } catch (const std::bad_alloc&) {
    return drive::out_of_memory_error(prepared.direction());
  }
}

// On the pump's thread: makes the receipt. Making a write durable takes long and happens elsewhere;
// then the outcome is empty, and that thread ends the call.
std::optional<Result<Receipt>> outcome_of(const std::shared_ptr<Job::State>& state,
                                          const std::shared_ptr<Prepared>& prepared,
                                          const drive::Drained& what) {
  try {
    auto receipt = account(*prepared, what);
    if (prepared->options.sync == Sync::none || prepared->direction() == Direction::read ||
        what.error) {
      return try_conclude(*prepared, std::move(receipt), what.error);
    }
    prepared->engine().make_durable(
        [state, kept = prepared, receipt = std::move(receipt)]() mutable {
          end(*state, kept, try_conclude(*kept, std::move(receipt), {}));
        });
    return {};
  } catch (const std::bad_alloc&) {
    return drive::out_of_memory_error(prepared->direction());
  }
}

void drained(const std::shared_ptr<Job::State>& state, std::shared_ptr<Prepared> prepared,
             const drive::Drained& what) {
  if (auto outcome = outcome_of(state, prepared, what)) end(*state, prepared, std::move(*outcome));
}

Result<void> hand_over(Engine& engine, const std::shared_ptr<drive::Order>& order,
                       Direction direction) {
  try {
    return engine.submit(order);
  } catch (const std::bad_alloc&) {
    return drive::out_of_memory_error(direction);
  }
}

Result<Job> start(Prepared made, std::shared_ptr<void> owner) {
  auto prepared = std::make_shared<Prepared>(std::move(made));
  auto state = new_state(*prepared, std::move(owner));
  auto spec = prepared->spec();
  if (!spec) {
    auto receipt = begin_receipt(prepared->first(), prepared->queued_ns);
    receipt.wanted_bytes = state->wanted_bytes;
    if (prepared->plans.size() > 1) receipt.ranges = prepared->untouched_ranges();
    if (state->wanted_bytes > 0) receipt.end_of_file = prepared->first().request.file_size_bytes;
    end(*state, prepared, prepared->conclude(std::move(receipt), {}));
    return Job(state);
  }
  auto order = std::make_shared<drive::Order>();
  order->spec = std::move(*spec);
  order->space = prepared->first().request.memory.space;
  order->device = prepared->first().request.memory.device;
  if (prepared->queued_work) {
    order->ready = [mark = prepared->queued_work] { return mark->reached(); };
  }
  if (prepared->options.on_progress) {
    order->on_progress = [call = prepared->options.on_progress, wanted = state->wanted_bytes](
                             std::uint64_t moved) { call({moved, wanted}); };
  }
  order->on_drained = [state, kept = prepared](const drive::Drained& what) mutable {
    drained(state, std::move(kept), what);
  };
  state->order = order;
  const auto engine = prepared->ranges.front().file->engine;
  const auto direction = prepared->direction();
  const std::weak_ptr<const Prepared> refused = prepared;  // held by the order alone from here on
  prepared.reset();
  if (auto submitted = hand_over(*engine, order, direction); !submitted) {
    if (const auto still = refused.lock()) still->undo_preallocation();
    state->order.reset();  // which holds the state
    return submitted.error();
  }
  return Job(state);
}

}  // namespace

Error closed_error(Direction direction, const std::string& path) {
  return {ErrorKind::closed,    ErrorOrigin::system, EBADF, to_string(direction), path, {},
          "the file is closed", "open it again"};
}

std::shared_ptr<const Settings> call_settings(const std::shared_ptr<const Settings>& settings,
                                              const CallOptions& options) {
  if (!options.policy && !options.cache && !options.evidence) return settings;
  auto changed = std::make_shared<Settings>(*settings);
  if (options.policy) changed->policy = {*options.policy, Origin::call};
  if (options.cache) changed->cache = {*options.cache, Origin::call};
  if (options.evidence) changed->evidence = {*options.evidence, Origin::call};
  return changed;
}

CallRange range_of(FileUse file, const Memory& memory, const CallOptions& options) {
  return {std::move(file), options.offset, options.size_bytes.value_or(memory.size_bytes), memory};
}

std::vector<CallRange> only(CallRange range) {
  std::vector<CallRange> ranges;
  ranges.push_back(std::move(range));
  return ranges;
}

void add_pins(plan::Facts& facts, OpenFile& file) {
  const auto pins = file.pins();
  if (!pins || file.engine->is_forked_child()) return;
  facts.pinned = pins->extents();
  facts.pin_lost = facts.pinned.empty() && pins->lost();
}

Result<Plan> plan_call(Direction direction, const CallRange& range,
                       const std::shared_ptr<const Settings>& settings, const MemoryRange* known,
                       std::uint64_t spare_memory_bytes) {
  if (auto checked = check_offsets(direction, range); !checked) return checked.error();
  if (known == nullptr) {
    if (auto checked = check_range(direction, range); !checked) return checked.error();
  }
  auto& engine = *range.file->engine;
  Request request;
  request.direction = direction;
  request.door = range.file->door;
  request.registered = range.registered;
  request.file = {range.offset, range.size_bytes};
  request.spare_memory_bytes = spare_memory_bytes;
  plan::Facts facts{range.file->facts, nullptr, nullptr, {}, false};
  if (range.peer) {
    request.memory = peer_range(range);
    facts.peer = peer_facts(range);
  } else if (known != nullptr) {
    request.memory = *known;
  } else {
    auto memory = engine.find_memory(range.memory, range.size_bytes);
    if (!memory) {
      auto error = memory.error();
      error.path = range.file->facts->path;
      return error;
    }
    request.memory = *memory;
    if (direction == Direction::write && memory->space == SpaceKind::host) {
      if (auto checked = check_source(range); !checked) return checked.error();
    }
  }
  // A small read finds the end by itself, and saves the look.
  // O_DIRECT would clear memory behind it.
  const bool may_be_direct =
      settings->policy.value == Policy::direct || settings->cache.value == Cache::bypass;
  if (known != nullptr || range.size_bytes > drive::inline_limit_bytes || may_be_direct ||
      direction == Direction::write || range.peer) {
    auto size = range.file->size();
    if (!size) return size.error();
    request.file_size_bytes = *size;
  }
  const bool with_gpu =
      request.memory.space == SpaceKind::cuda || (known != nullptr && !range.peer);
  facts.machine = engine.machine(with_gpu);
  if (request.memory.space == SpaceKind::cuda) add_pins(facts, *range.file);
  if (request.memory.space == SpaceKind::cuda && facts.machine->nvfs_loaded) {
    facts.file = vendor_facts(*range.file);
  }
  return plan::make_plan(request, facts, settings);
}

Result<Receipt> run_call(Direction direction, std::vector<CallRange> ranges,
                         const CallOptions& options) {
  if (ranges.front().file->engine->on_own_thread()) {
    return calls_itself_error("wait for a transfer");
  }
  auto job = submit_call(direction, std::move(ranges), options, nullptr);
  if (!job) return job.error();
  return job->result();
}

Result<Job> submit_call(Direction direction, std::vector<CallRange> ranges,
                        const CallOptions& options, std::shared_ptr<void> owner) {
  auto prepared = prepare(direction, std::move(ranges), options);
  if (!prepared) return prepared.error();
  return start(std::move(*prepared), std::move(owner));
}

}  // namespace straightway
