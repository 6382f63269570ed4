// The C ABI: words, receipts and plans.

#include "api/c_edge.hpp"

using namespace straightway;
using namespace straightway::c_edge;

namespace {

sw_receipt_summary summary_of(const Receipt& receipt) {
  return {.struct_size = sizeof(sw_receipt_summary),
          .direction = static_cast<sw_direction>(receipt.direction),
          .door = static_cast<sw_door>(receipt.door),
          .space = static_cast<sw_space>(receipt.memory.space),
          .device = receipt.memory.device,
          .ended_early = receipt.ended_early ? 1 : 0,
          .end_of_file = receipt.end_of_file,
          .file_offset = receipt.file_offset,
          .wanted_bytes = receipt.wanted_bytes,
          .moved_bytes = receipt.moved_bytes,
          .retries = receipt.retries,
          .fallbacks = receipt.fallbacks,
          .fallback_code = receipt.fallback_code,
          .disk_measured = receipt.disk_measured ? 1 : 0,
          .disk_bytes = receipt.disk_bytes,
          .threads = receipt.threads,
          .reserved = 0,
          .pinned_bytes = receipt.pinned_bytes,
          .queued_ns = receipt.times.queued_ns,
          .started_ns = receipt.times.started_ns,
          .first_byte_ns = receipt.times.first_byte_ns,
          .done_ns = receipt.times.done_ns,
          .layer_n = receipt.layer.n,
          .layer_nvfs = receipt.layer.nvfs,
          .layer_p2pdma = receipt.layer.p2pdma,
          .layer_posix = receipt.layer.posix,
          .range_count = receipt.ranges ? receipt.ranges->offset.size() : 0,
          .found_hot_bytes = receipt.found.hot_bytes,
          .found_cold_bytes = receipt.found.cold_bytes,
          .found_unknown_bytes = receipt.found.unknown_bytes,
          .pin_bytes = receipt.pin_bytes};
}

sw_route_share share_of(const Receipt& receipt, Route route) {
  const RouteShare& share = receipt.routes[index(route)];
  return {.struct_size = sizeof(sw_route_share),
          .route = static_cast<sw_route>(route),
          .bytes = share.bytes,
          .segments = share.segments,
          .reason = static_cast<sw_reason>(share.reason),
          .refused = static_cast<sw_reason>(receipt.refused[index(route)]),
          .evidence = static_cast<sw_evidence>(share.evidence.kind),
          .witness = static_cast<sw_witness>(share.evidence.witness),
          .scope = static_cast<sw_scope>(share.evidence.scope),
          .reserved = 0};
}

sw_plan_run run_of(const Run& run) {
  return {.struct_size = sizeof(sw_plan_run),
          .route = static_cast<sw_route>(run.route),
          .reason = static_cast<sw_reason>(run.reason),
          .direct_io = run.direct_io ? 1 : 0,
          .offset = run.file.offset,
          .size_bytes = run.file.size_bytes,
          .segment_bytes = run.segment_bytes,
          .segments = segment_count(run)};
}

template <class Value, class Make>
const char* text_of(const Value* value, const LazyText Value::* text, Make make) {
  if (value == nullptr) return nullptr;
  return guarded_getter<const char*>(nullptr,
                                     [&] { return (value->*text).get([&] { return make(); }); });
}

}  // namespace

extern "C" {

const char* sw_version(void) { return version(); }

uint32_t sw_abi_version(void) { return SW_ABI_VERSION; }

void sw_init(void* sized_struct, size_t struct_size) {
  if (sized_struct == nullptr || struct_size < sizeof(std::uint32_t)) return;
  std::memset(sized_struct, 0, struct_size);
  const auto size = static_cast<std::uint32_t>(struct_size);
  std::memcpy(sized_struct, &size, sizeof size);
}

const char* sw_status_name(sw_status status) {
  if (status == SW_OK) return "ok";
  if (status < SW_OK || status > SW_FORKED) return "unknown";
  return to_string(static_cast<ErrorKind>(status - 1));
}

const char* sw_route_name(sw_route route) {
  if (route < 0 || route >= SW_ROUTE_COUNT) return "unknown";
  return to_string(static_cast<Route>(route));
}

const char* sw_reason_name(sw_reason reason) {
  if (reason < 0 || reason > 255) return "unknown";
  return to_string(static_cast<Reason>(reason));
}

uint64_t sw_receipt_moved_bytes(const sw_receipt* receipt) {
  return receipt == nullptr ? 0 : receipt->value.moved_bytes;
}

uint64_t sw_receipt_wanted_bytes(const sw_receipt* receipt) {
  return receipt == nullptr ? 0 : receipt->value.wanted_bytes;
}

sw_status sw_receipt_summarize(const sw_receipt* receipt, sw_receipt_summary* summary,
                               sw_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (receipt == nullptr) return invalid("summarize a receipt", "it is NULL");
    return give(summary, summary_of(receipt->value), "sw_receipt_summary");
  });
}

sw_status sw_receipt_route(const sw_receipt* receipt, sw_route route, sw_route_share* share,
                           sw_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (receipt == nullptr) return invalid("look a route up in a receipt", "it is NULL");
    Result<Route> found = route_of(route);
    if (!found) return found.error();
    return give(share, share_of(receipt->value, *found), "sw_route_share");
  });
}

size_t sw_receipt_ranges(const sw_receipt* receipt, const uint64_t** offset,
                         const uint64_t** wanted_bytes, const uint64_t** moved_bytes) {
  const RangeTable* table = receipt == nullptr ? nullptr : receipt->value.ranges.get();
  if (offset != nullptr) *offset = table == nullptr ? nullptr : table->offset.data();
  if (wanted_bytes != nullptr)
    *wanted_bytes = table == nullptr ? nullptr : table->wanted_bytes.data();
  if (moved_bytes != nullptr) *moved_bytes = table == nullptr ? nullptr : table->moved_bytes.data();
  return table == nullptr ? 0 : table->offset.size();
}

const char* sw_receipt_text(const sw_receipt* receipt) {
  return text_of(receipt, &sw_receipt::text, [&] { return receipt->value.to_text(); });
}

const char* sw_receipt_json(const sw_receipt* receipt) {
  return text_of(receipt, &sw_receipt::json, [&] { return receipt->value.to_json(); });
}

void sw_receipt_free(sw_receipt* receipt) { delete receipt; }

sw_reason sw_plan_failure(const sw_plan* plan) {
  return plan == nullptr ? 0 : static_cast<sw_reason>(plan->value.failure);
}

sw_reason sw_plan_refused(const sw_plan* plan, sw_route route) {
  if (plan == nullptr || route < 0 || route >= SW_ROUTE_COUNT) return 0;
  return static_cast<sw_reason>(plan->value.refused[static_cast<std::size_t>(route)]);
}

size_t sw_plan_run_count(const sw_plan* plan) {
  return plan == nullptr ? 0 : plan->value.run_count;
}

sw_status sw_plan_get_run(const sw_plan* plan, size_t i, sw_plan_run* run, sw_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (plan == nullptr) return invalid("look a run up in a plan", "it is NULL");
    if (i >= plan->value.run_count)
      return invalid("look run " + std::to_string(i) + " up in a plan",
                     "it has " + std::to_string(plan->value.run_count));
    return give(run, run_of(plan->value.runs[i]), "sw_plan_run");
  });
}

const char* sw_plan_text(const sw_plan* plan) {
  return text_of(plan, &sw_plan::text, [&] { return plan->value.to_text(); });
}

const char* sw_plan_json(const sw_plan* plan) {
  return text_of(plan, &sw_plan::json, [&] { return plan->value.to_json(); });
}

void sw_plan_free(sw_plan* plan) { delete plan; }

}  // extern "C"
