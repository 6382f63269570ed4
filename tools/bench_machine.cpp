// The machine that the bench ran on, for who reads the numbers later.

#include <fmt/format.h>

#include "bench_run.hpp"
#include "memory_left.hpp"
#include "os/system_text.hpp"

namespace straightway::tools {
namespace {

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun ..." has it as its first word
// that begins with a digit and holds a dot.
Json kernel_driver() {
  const std::string text = os::read_text("/proc/driver/nvidia/version", 4096).value_or("");
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view word = os::take_field(rest, ' ');
    if (!word.empty() && word[0] >= '0' && word[0] <= '9' &&
        word.find('.') != std::string_view::npos) {
      return std::string(word);
    }
  }
  return nullptr;
}

Json optional(double gbs) { return gbs > 0 ? Json(gbs) : Json(nullptr); }

Json ceilings_json(const BenchRun& run) {
  const Ceilings& found = run.ceilings;
  Json json = {{"link_gbs", optional(found.link)}, {"copiers_gbs", optional(found.copiers)}};
  json["disk_gbs"] = optional(run.disk_ceiling().gbs);
  json["disk_ways_gbs"] = Json(found.disk);
  json["write_ways_gbs"] = Json(found.write);
  return json;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

Json machine_json(const BenchRun& run) {
  const FileFacts& file = *run.file.facts();
  Json json = Json::object();
  const auto context = Context::process_default();
  if (context) {
    if (const auto machine = (*context)->machine(run.on_device())) {
      json["kernel"] = (*machine)->kernel;
      json["cpus"] = (*machine)->cpus;
      json["memory_bytes"] = total_memory_bytes().value_or(0);
      json["gpu"] = run.on_device() ? Json(run.target->name()) : Json(nullptr);
      json["simulated"] = run.on_device() && (*machine)->cuda_simulated;
      json["run_udev"] = (*machine)->run_udev;
    }
  }
  json["driver"] = run.on_device() ? kernel_driver() : Json(nullptr);
  json["cuda"] = text_or_null(run.target->driver());
  json["target"] = run.target->name();
  json["filesystem"] = file.filesystem;
  json["device"] = text_or_null(file.device);
  json["device_driver"] = text_or_null(file.device_driver);
  json["file"] = run.sample.path();
  json["size_bytes"] = run.size_bytes;
  json["cold_bytes"] = run.cold_bytes;
  json["rounds"] = run.rounds;
  json["spread_is"] = "(max - min) / median";
  json["straightway"] = version();
  json["ceilings"] = ceilings_json(run);
  return json;
}

}  // namespace straightway::tools
