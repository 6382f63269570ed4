// The receipt for programs. Keys are stable: others may be added, none changes its meaning.

#include <string.h>

#include <nlohmann/json.hpp>

#include "plan/planner.hpp"
#include "receipt/duration.hpp"
#include "receipt/shown_settings.hpp"
#include "straightway/receipt.hpp"

namespace straightway {
namespace {

using nlohmann::ordered_json;

ordered_json reason_text(const Receipt& receipt, Reason reason, Route route) {
  if (reason == Reason::none) return nullptr;
  return plan::sentence(reason, route, receipt.file.get(), receipt.machine.get(),
                        receipt.settings.get(), receipt.peer.get());
}

ordered_json routes_json(const Receipt& receipt) {
  ordered_json list = ordered_json::array();
  for (const Route route : all_routes) {
    const RouteShare& share = receipt.routes[index(route)];
    if (share.bytes == 0 && share.segments == 0) continue;
    list.push_back({{"route", to_string(route)},
                    {"bytes", share.bytes},
                    {"segments", share.segments},
                    {"reason", to_string(share.reason)},
                    {"reason_text", reason_text(receipt, share.reason, route)},
                    {"evidence",
                     {{"kind", to_string(share.evidence.kind)},
                      {"witness", to_string(share.evidence.witness)},
                      {"scope", to_string(share.evidence.scope)}}}});
  }
  return list;
}

ordered_json found_json(const Receipt& receipt) {
  const CacheFound& found = receipt.found;
  if (!found.looked()) return nullptr;
  return {{"hot_bytes", found.hot_bytes},
          {"cold_bytes", found.cold_bytes},
          {"unknown_bytes", found.unknown_bytes},
          {"cold_reason", to_string(receipt.cold_reason)},
          {"cold_reason_text", reason_text(receipt, receipt.cold_reason, Route::buffered)}};
}

ordered_json refused_json(const Receipt& receipt) {
  ordered_json list = ordered_json::array();
  for (const Route route : all_routes) {
    const Reason reason = receipt.refused[index(route)];
    if (reason == Reason::none) continue;
    list.push_back({{"route", to_string(route)},
                    {"reason", to_string(reason)},
                    {"reason_text", reason_text(receipt, reason, route)}});
  }
  return list;
}

ordered_json settings_json(const Receipt& receipt) {
  ordered_json map = ordered_json::object();
  if (!receipt.settings) return map;
  for (const auto& setting : receipt::shown_settings(*receipt.settings, receipt.door)) {
    const auto value =
        std::visit([](const auto& held) { return ordered_json(held); }, setting.value);
    ordered_json& place = *setting.layer == '\0' ? map : map[setting.layer];
    place[setting.name] = {{"value", value}, {"origin", to_string(setting.origin)}};
  }
  return map;
}

ordered_json ranges_json(const RangeTable& ranges) {
  return {{"offset", ranges.offset},
          {"wanted_bytes", ranges.wanted_bytes},
          {"moved_bytes", ranges.moved_bytes}};
}

ordered_json errno_name(int code) {
  const char* name = code == 0 ? nullptr : ::strerrorname_np(code);
  return name == nullptr ? ordered_json(nullptr) : ordered_json(name);
}

void add_request(ordered_json& json, const Receipt& receipt) {
  const MemoryRange& memory = receipt.memory;
  json["direction"] = to_string(receipt.direction);
  json["door"] = to_string(receipt.door);
  json["space"] = to_string(memory.space);
  json["device"] =
      memory.space == SpaceKind::cuda ? ordered_json(memory.device) : ordered_json(nullptr);
  if (receipt.peer) json["peer_device"] = receipt.peer->device;
  json["path"] = receipt.file ? ordered_json(receipt.file->path) : ordered_json(nullptr);
  json["offset"] = receipt.file_offset;
  json["wanted_bytes"] = receipt.wanted_bytes;
  json["moved_bytes"] = receipt.moved_bytes;
  json["ended_early"] = receipt.ended_early;
  json["end_of_file"] =
      receipt.ended_early ? ordered_json(receipt.end_of_file) : ordered_json(nullptr);
}

void add_outcome(ordered_json& json, const Receipt& receipt) {
  const Times& times = receipt.times;
  json["routes"] = routes_json(receipt);
  json["refused"] = refused_json(receipt);
  json["retries"] = receipt.retries;
  json["fallbacks"] = receipt.fallbacks;
  json["fallback_errno"] =
      receipt.fallbacks == 0 ? ordered_json(nullptr) : ordered_json(receipt.fallback_code);
  json["fallback_errno_name"] = errno_name(receipt.fallbacks == 0 ? 0 : receipt.fallback_code);
  json["disk_bytes"] =
      receipt.disk_measured ? ordered_json(receipt.disk_bytes) : ordered_json(nullptr);
  json["found"] = found_json(receipt);
  json["threads"] = receipt.threads;
  json["pinned_bytes"] = receipt.pinned_bytes;
  json["pin_bytes"] = receipt.pin_bytes;
  json["times"] = {{"queued_ns", times.queued_ns},
                   {"started_ns", times.started_ns},
                   {"first_byte_ns", times.first_byte_ns},
                   {"done_ns", times.done_ns}};
  json["duration_ns"] = receipt::duration_ns(times);
  json["layer"] = {{"n", receipt.layer.n},
                   {"nvfs", receipt.layer.nvfs},
                   {"p2pdma", receipt.layer.p2pdma},
                   {"posix", receipt.layer.posix}};
}

}  // namespace

std::string Receipt::to_json() const {
  ordered_json json;
  add_request(json, *this);
  add_outcome(json, *this);
  json["ranges"] = ranges ? ranges_json(*ranges) : ordered_json(nullptr);
  json["settings"] = settings_json(*this);
  // A path may hold any bytes; those that are no UTF-8 become U+FFFD.
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace straightway
