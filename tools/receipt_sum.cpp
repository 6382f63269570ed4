#include "receipt_sum.hpp"

#include <algorithm>

namespace straightway::tools {
namespace {

// none is weaker than claimed, claimed weaker than observed.
int strength(EvidenceKind kind) {
  switch (kind) {
    case EvidenceKind::observed:
      return 2;
    case EvidenceKind::claimed:
      return 1;
    case EvidenceKind::none:
      break;
  }
  return 0;
}

void add(RouteShare& sum, const RouteShare& later) {
  if (later.segments == 0 && later.bytes == 0) return;
  const bool first = sum.segments == 0 && sum.bytes == 0;
  if (first) {
    sum = later;
    return;
  }
  sum.bytes += later.bytes;
  sum.segments += later.segments;
  if (strength(later.evidence.kind) < strength(sum.evidence.kind)) sum.evidence = later.evidence;
}

std::uint64_t earlier(std::uint64_t a_ns, std::uint64_t b_ns) {
  if (a_ns == 0 || b_ns == 0) return std::max(a_ns, b_ns);
  return std::min(a_ns, b_ns);
}

}  // namespace

void add(Receipt& sum, const Receipt& later) {
  sum.wanted_bytes += later.wanted_bytes;
  sum.moved_bytes += later.moved_bytes;
  if (later.ended_early) {
    sum.ended_early = true;
    sum.end_of_file = later.end_of_file;
  }
  for (const Route route : all_routes) {
    add(sum.routes[index(route)], later.routes[index(route)]);
    if (sum.routes[index(route)].bytes > 0) sum.refused[index(route)] = Reason::none;
  }
  sum.retries += later.retries;
  if (sum.fallbacks == 0) sum.fallback_code = later.fallback_code;
  sum.fallbacks += later.fallbacks;
  sum.found.hot_bytes += later.found.hot_bytes;
  sum.found.cold_bytes += later.found.cold_bytes;
  sum.found.unknown_bytes += later.found.unknown_bytes;
  if (sum.cold_reason == Reason::none) sum.cold_reason = later.cold_reason;
  sum.disk_measured = sum.disk_measured && later.disk_measured;
  sum.disk_bytes = sum.disk_measured ? sum.disk_bytes + later.disk_bytes : 0;
  sum.threads = std::max(sum.threads, later.threads);
  sum.pinned_bytes = std::max(sum.pinned_bytes, later.pinned_bytes);
  sum.pin_bytes = std::max(sum.pin_bytes, later.pin_bytes);
  sum.times.queued_ns = earlier(sum.times.queued_ns, later.times.queued_ns);
  sum.times.started_ns = earlier(sum.times.started_ns, later.times.started_ns);
  sum.times.first_byte_ns = earlier(sum.times.first_byte_ns, later.times.first_byte_ns);
  sum.times.done_ns = std::max(sum.times.done_ns, later.times.done_ns);
  sum.layer.n += later.layer.n;
  sum.layer.nvfs += later.layer.nvfs;
  sum.layer.p2pdma += later.layer.p2pdma;
  sum.layer.posix += later.layer.posix;
}

}  // namespace straightway::tools
