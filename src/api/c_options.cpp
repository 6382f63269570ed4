// The C ABI: its option structs as the options of the C++ API.

#include <chrono>
#include <limits>

#include "api/c_edge.hpp"

namespace straightway::c_edge {

Result<ContextOptions> context_options_of(const sw_context_options* given) {
  Result<sw_context_options> taken = take(given, "sw_context_options");
  if (!taken) return taken.error();
  constexpr std::uint32_t known = SW_CONTEXT_THREADS | SW_CONTEXT_PINNED_BYTES |
                                  SW_CONTEXT_NO_LEDGER | SW_CONTEXT_LEDGER | SW_CONTEXT_PIN_BYTES;
  if ((taken->flags & ~known) != 0)
    return invalid("use sw_context_options.flags", "it has bits that mean nothing");
  if ((taken->flags & SW_CONTEXT_NO_LEDGER) != 0 && (taken->flags & SW_CONTEXT_LEDGER) != 0)
    return invalid("use sw_context_options.flags", "the ledger is both wanted and not");
  ContextOptions options;
  auto policy = policy_of(taken->policy);
  if (!policy) return policy.error();
  auto cache = cache_of(taken->cache);
  if (!cache) return cache.error();
  auto evidence = demand_of(taken->evidence);
  if (!evidence) return evidence.error();
  options.policy = *policy;
  options.cache = *cache;
  options.evidence = *evidence;
  if ((taken->flags & SW_CONTEXT_THREADS) != 0) options.threads = taken->threads;
  if ((taken->flags & SW_CONTEXT_PINNED_BYTES) != 0) options.pinned_bytes = taken->pinned_bytes;
  if ((taken->flags & SW_CONTEXT_PIN_BYTES) != 0) options.pin_bytes = taken->pin_bytes;
  if ((taken->flags & SW_CONTEXT_NO_LEDGER) != 0) options.ledger = false;
  if ((taken->flags & SW_CONTEXT_LEDGER) != 0) options.ledger = true;
  if (taken->on_warning != nullptr)
    options.on_warning = [sink = taken->on_warning, user = taken->on_warning_user](
                             std::string_view text) { sink(std::string(text).c_str(), user); };
  return options;
}

Result<OpenOptions> open_options_of(const sw_open_options* given) {
  Result<sw_open_options> taken = take(given, "sw_open_options");
  if (!taken) return taken.error();
  auto policy = policy_of(taken->policy);
  if (!policy) return policy.error();
  auto cache = cache_of(taken->cache);
  if (!cache) return cache.error();
  auto door = door_of(taken->door);
  if (!door) return door.error();
  return OpenOptions{.policy = *policy, .cache = *cache, .door = *door};
}

Result<CallOptions> call_options_of(const sw_call_options& taken) {
  constexpr std::uint32_t known = SW_CALL_SIZE | SW_CALL_EXACT;
  if ((taken.flags & ~known) != 0)
    return invalid("use sw_call_options.flags", "it has bits that mean nothing");
  constexpr auto longest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (taken.deadline_ns > longest)
    return invalid("use deadline_ns " + std::to_string(taken.deadline_ns),
                   "it is beyond 2^63 - 1 ns", "leave it 0 for no deadline");
  auto policy = policy_of(taken.policy);
  if (!policy) return policy.error();
  auto cache = cache_of(taken.cache);
  if (!cache) return cache.error();
  auto evidence = demand_of(taken.evidence);
  if (!evidence) return evidence.error();
  auto sync = sync_of(taken.sync);
  if (!sync) return sync.error();
  CallOptions options;
  options.offset = taken.offset;
  if ((taken.flags & SW_CALL_SIZE) != 0) options.size_bytes = taken.size_bytes;
  options.policy = *policy;
  options.cache = *cache;
  options.evidence = *evidence;
  options.exact = (taken.flags & SW_CALL_EXACT) != 0;
  options.sync = *sync;
  if (taken.stream != nullptr) options.stream = Stream{taken.stream};
  if (taken.deadline_ns != 0) options.deadline = std::chrono::nanoseconds(taken.deadline_ns);
  if (taken.on_progress != nullptr)
    options.on_progress = [call = taken.on_progress,
                           user = taken.on_progress_user](const Progress& progress) {
      call(progress.moved_bytes, progress.wanted_bytes, user);
    };
  return options;
}

Result<CallOptions> call_options_of(const sw_call_options* given) {
  Result<sw_call_options> taken = take(given, "sw_call_options");
  if (!taken) return taken.error();
  return call_options_of(*taken);
}

}  // namespace straightway::c_edge
