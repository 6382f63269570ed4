#include "api/call.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "api/job.hpp"
#include "api/outcome.hpp"
#include "api/page_cache.hpp"
#include "api/peer_call.hpp"
#include "api/planning.hpp"
#include "api/preallocation.hpp"
#include "api/second_descriptor.hpp"
#include "api/vendor_call.hpp"
#include "plan/direct_paths.hpp"
#include "plan/planner.hpp"
#include "plan/runs.hpp"

namespace straightway {
namespace {

// A call that is checked and planned. Of its ranges and plans it keeps those that somebody asks for
// afterwards: the first of each file and of each peer memory, which stays mapped with it, and those
// whose way is still to be judged.
struct Prepared {
  std::vector<CallRange> ranges;
  std::vector<Plan> plans;  // of these
  std::size_t range_count = 0;
  std::uint64_t wanted_bytes = 0;
  MemoryRange memory;        // of the first range that has bytes
  drive::TransferSpec spec;  // of all ranges, until it is handed over
  bool moves = false;        // something does
  CallOptions options;
  std::uint64_t queued_ns = 0;
  std::shared_ptr<memory::Mark> queued_work;  // of the user's stream; the transfer comes after it
  Preallocation preallocated;                 // of a single range
  std::optional<VendorLook> vendor;

  Engine& engine() const { return *ranges.front().file->engine; }
  const Plan& first() const { return plans.front(); }
  Direction direction() const { return first().request.direction; }
  Result<void> add(const CallRange& range, Plan plan);
  void preallocate();
  void undo_preallocation() const;
  Result<Receipt> conclude(Receipt receipt, std::optional<Error> error) const;
  void complete_spec();
  std::shared_ptr<const RangeTable> untouched_ranges() const;
};

// Whether what comes of it says something about its way: by a direct path, or past one.
bool is_judged(const Plan& plan) {
  const auto* end = plan.runs.data() + plan.run_count;
  return takes_vendor(plan) || std::any_of(plan.runs.data(), end, [](const Run& run) {
           return run.route == Route::p2pdma || run.reason == Reason::fell_back;
         });
}

Result<void> Prepared::add(const CallRange& range, Plan plan) {
  const auto& wanted = plan.request;
  if (memory.size_bytes == 0) memory = wanted.memory;
  const bool same_space =
      wanted.memory.space == memory.space && wanted.memory.device == memory.device;
  if (wanted.memory.size_bytes > 0 && !same_space) {
    return argument_error(wanted.direction, range, "the ranges lie in different memories",
                          "make one call for each GPU, and one for host memory");
  }
  const bool is_new_file = ranges.empty() || ranges.back().file.get() != range.file.get();
  const bool direct = uses_direct(plan);
  if (is_new_file) {
    spec.files.push_back({range.file->ref(direct), plan.file->path});
  } else if (direct) {
    spec.files.back().ref = range.file->ref(true);
  }
  spec.legs.push_back({wanted.file, wanted.memory.address,
                       static_cast<std::uint32_t>(spec.files.size() - 1), plan.run_count,
                       plan.runs});
  moves |= plan.run_count > 0;
  wanted_bytes += wanted.file.size_bytes;
  ++range_count;
  const bool is_new_peer = range.peer && (is_new_file || ranges.back().peer != range.peer);
  if (!is_new_file && !is_new_peer && !is_judged(plan)) return {};
  ranges.push_back(range.again());
  plans.push_back(std::move(plan));
  return {};
}

// The table of a call that has nothing to move.
std::shared_ptr<const RangeTable> Prepared::untouched_ranges() const {
  auto table = std::make_shared<RangeTable>();
  for (const auto& leg : spec.legs) {
    table->offset.push_back(leg.range.offset);
    table->wanted_bytes.push_back(leg.range.size_bytes);
    table->moved_bytes.push_back(0);
  }
  return table;
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
  count_fallback(plans, receipt);
  if (!error && vendor) {
    if (auto judged = judge_vendor(ranges, plans, *vendor, receipt); !judged)
      error = judged.error();
  }
  if (error) {
    engine().record_error(direction());
    return *error;
  }
  judge_peers(plans, receipt);
  const auto file_size = first().request.file_size_bytes;
  receipt.ended_early =
      direction() == Direction::read && receipt.moved_bytes < receipt.wanted_bytes;
  if (receipt.ended_early && range_count == 1 && file_size > 0 && file_size < receipt.end_of_file) {
    receipt.end_of_file = file_size;  // the read began behind the end
  }
  engine().record(receipt);
  return judge_receipt(std::move(receipt), options);
}

// Of one range: among many there may be wide holes, which are to stay holes.
void Prepared::preallocate() {
  const auto& request = first().request;
  if (range_count != 1 || direction() == Direction::read || !uses_direct(first()) ||
      request.file.size_bytes <= plan::direct_segment_bytes) {
    return;
  }
  preallocated = straightway::preallocate(engine().syscalls(), ranges.front().file->ref(false).fd,
                                          request.file_size_bytes, request.file);
}

void Prepared::undo_preallocation() const {
  undo(engine().syscalls(), ranges.front().file->ref(false).fd, preallocated, first().request.file);
}

void Prepared::complete_spec() {
  spec.direction = direction();
  spec.may_fall_back = may_fall_back(first());
  for (const auto& plan : plans) {  // the last knows what loading the library changed
    if (takes_vendor(plan)) spec.vendor_route = plan::vendor_route(*plan.machine);
  }
  if (options.deadline) {
    spec.deadline_ns = queued_ns + static_cast<std::uint64_t>(options.deadline->count());
  }
  use_page_cache(spec, engine().syscalls());
}

// Plans one range, by ways that are tried as far as they have to be. made: its plan, where there is
// one.
Result<Plan> plan_range(Planning& planning, CallRange& range, std::optional<Plan> made) {
  if (auto found = find_peer(range); !found) return found.error();
  auto plan = made && !range.peer ? Result<Plan>(std::move(*made)) : planning.plan(range);
  if (!plan) return plan.error();
  try_peer(*plan, range, planning.stamp());
  if (try_vendor(*plan, range)) planning.forget_facts();
  if (plan->failure != Reason::none) return refusal(*plan);
  if (auto secured = secure_direct(*plan, *range.file); !secured) return secured.error();
  return plan;
}

Result<void> plan_all(Direction direction, CallRanges& ranges, Prepared& prepared) {
  auto& range = ranges.range;
  const auto settings = call_settings(range.file->settings, prepared.options);
  Planning planning(direction, settings, nullptr,
                    spare_memory(direction, ranges.largest_bytes, *settings));
  if (ranges.all) {
    range.memory = *ranges.all;
    range.size_bytes = ranges.all->size_bytes;
    if (auto looked = planning.look_at_memory(range); !looked) return looked.error();
  }
  prepared.spec.legs.reserve(ranges.count);
  for (std::size_t i = 0; i < ranges.count; ++i) {
    if (ranges.next) ranges.next(i, range);
    auto plan = plan_range(planning, range, std::exchange(ranges.planned, {}));
    if (!plan) return plan.error();
    if (auto added = prepared.add(range, std::move(*plan)); !added) return added.error();
  }
  return {};
}

Result<Prepared> prepare(Direction direction, CallRanges ranges, const CallOptions& options) {
  Prepared prepared;
  prepared.queued_ns = drive::now_ns();
  prepared.options = options;
  if (options.deadline && options.deadline->count() <= 0) {
    return argument_error(direction, ranges.range, "the deadline is not in the future",
                          "give a time above zero");
  }
  const bool ordered = ranges.range.ordered;
  if (auto planned = plan_all(direction, ranges, prepared); !planned) return planned.error();
  prepared.vendor = look_before(prepared.ranges, prepared.plans);
  const auto& memory = prepared.memory;
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
  state->wanted_bytes = prepared.wanted_bytes;
  return state;
}

// Lets go of the files, then tells whoever waits. Needs no memory.
void end(Job::State& state, std::shared_ptr<Prepared>& prepared, Result<Receipt> outcome) {
  state.settle(std::move(outcome), [&] { prepared->ranges.clear(); });
  prepared.reset();  // before anybody is told: whoever waits may then end the Context
  state.tell();
}

void add_counters(LayerCounters& sum, const LayerCounters& more) {
  sum.n += more.n;
  sum.nvfs += more.nvfs;
  sum.p2pdma += more.p2pdma;
  sum.posix += more.posix;
}

Receipt account(const Prepared& prepared, const drive::Drained& what) {
  auto receipt = begin_receipt(prepared.first(), prepared.queued_ns);
  for (std::size_t i = 0; i < prepared.plans.size(); ++i) {
    count_refused_direct(receipt, prepared.plans[i], *prepared.ranges[i].file);
    if (i > 0) add_counters(receipt.layer, prepared.plans[i].cufile.counters);
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
  if (!prepared->moves) {
    auto receipt = begin_receipt(prepared->first(), prepared->queued_ns);
    receipt.wanted_bytes = state->wanted_bytes;
    if (prepared->range_count > 1) receipt.ranges = prepared->untouched_ranges();
    if (state->wanted_bytes > 0) receipt.end_of_file = prepared->first().request.file_size_bytes;
    end(*state, prepared, prepared->conclude(std::move(receipt), {}));
    return Job(state);
  }
  auto order = std::make_shared<drive::Order>();
  prepared->complete_spec();
  order->spec = std::move(prepared->spec);
  order->space = prepared->memory.space;
  order->device = prepared->memory.device;
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

CallRanges only(CallRange range) {
  const auto size_bytes = range.size_bytes;
  return {.range = std::move(range), .count = 1, .largest_bytes = size_bytes};
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
  return Planning(direction, settings, known, spare_memory_bytes).plan(range);
}

Result<Receipt> run_call(Direction direction, CallRanges ranges, const CallOptions& options) {
  if (ranges.range.file->engine->on_own_thread()) {
    return calls_itself_error("wait for a transfer");
  }
  auto job = submit_call(direction, std::move(ranges), options, nullptr);
  if (!job) return job.error();
  return job->result();
}

Result<Job> submit_call(Direction direction, CallRanges ranges, const CallOptions& options,
                        std::shared_ptr<void> owner) {
  auto prepared = prepare(direction, std::move(ranges), options);
  if (!prepared) return prepared.error();
  return start(std::move(*prepared), std::move(owner));
}

}  // namespace straightway
