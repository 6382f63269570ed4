#include "bench_case.hpp"

namespace straightway::tools {

BenchCase make_case(std::string name, std::uint64_t bytes) {
  BenchCase result;
  result.name = std::move(name);
  result.bytes = bytes;
  return result;
}

BenchCase skip_case(std::string name, std::string why) {
  BenchCase result = make_case(std::move(name), 0);
  result.skipped = std::move(why);
  return result;
}

double to_gbs(std::uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0;
}

double median_gbs(const Way& way, std::uint64_t bytes) {
  return way.measured() ? to_gbs(bytes, median(way.seconds)) : 0;
}

void fill(BenchCase& result, const Way& way, Ceiling ceiling) {
  result.failure = way.failure;
  result.ceiling = std::move(ceiling);
  if (!way.measured()) return;
  result.verified = true;
  result.median_gbs = median_gbs(way, result.bytes);
  result.spread = spread(way.seconds);
  result.cpu_s_per_gb = median(way.cpu_s) / (static_cast<double>(result.bytes) / 1e9);
  if (!result.first_call_gbs) result.first_call_gbs = to_gbs(result.bytes, way.seconds.front());
  result.more["runs"] = way.seconds.size();
}

Json to_json(const BenchCase& result) {
  const bool shown = result.measured();
  const auto number = [&](double value) { return shown ? Json(value) : Json(nullptr); };
  Json json = {{"case", result.name},
               {"bytes", result.bytes},
               {"median_gbs", number(result.median_gbs)},
               {"spread", number(result.spread)}};
  json["share_of_ceiling"] = result.ceiling.gbs > 0 ? number(result.share()) : Json(nullptr);
  json["cpu_s_per_gb"] = number(result.cpu_s_per_gb);
  json["pinned_bytes"] = shown ? Json(result.pinned_bytes) : Json(nullptr);
  json["first_call_gbs"] = result.first_call_gbs ? number(*result.first_call_gbs) : Json(nullptr);
  json["verified"] = shown;
  json["ceiling"] = result.ceiling.name;
  json["ceiling_gbs"] = result.ceiling.gbs > 0 ? Json(result.ceiling.gbs) : Json(nullptr);
  if (result.p50_us) json["p50_us"] = number(*result.p50_us);
  if (result.p99_us) json["p99_us"] = number(*result.p99_us);
  if (!result.skipped.empty()) json["skipped"] = result.skipped;
  if (result.failure) json["error"] = to_json(*result.failure);
  if (shown) json.update(result.more);
  return json;
}

}  // namespace straightway::tools
