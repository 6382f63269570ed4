#include "values.hpp"

#include <string>

#include "plan/planner.hpp"
#include "state.hpp"
#include "straightway/plan.hpp"
#include "straightway/receipt.hpp"
#include "text.hpp"

namespace nb = nanobind;

namespace straightway::python {
namespace {

nb::str device_name(const MemoryRange& memory) {
  const std::string space = to_string(memory.space);
  const bool has_index = memory.space != SpaceKind::host;
  return nb::str((has_index ? space + ":" + std::to_string(memory.device) : space).c_str());
}

template <class Value>
nb::tuple reason(const Value& value, Reason code, Route route) {
  return nb::make_tuple(to_string(code),
                        to_text(plan::sentence(code, route, value.file.get(), value.machine.get(),
                                               value.settings.get())));
}

template <class Value>
nb::dict refused(const Value& value) {
  nb::dict out;
  for (const Route route : all_routes) {
    const Reason code = value.refused[index(route)];
    if (code != Reason::none) out[to_string(route)] = reason(value, code, route);
  }
  return out;
}

nb::dict receipt_routes(const Receipt& receipt) {
  nb::dict out;
  for (const Route route : all_routes) {
    const RouteShare& share = receipt.routes[index(route)];
    if (share.segments == 0 && share.bytes == 0) continue;
    const Evidence& evidence = share.evidence;
    out[to_string(route)] =
        nb::make_tuple(share.bytes, share.segments, reason(receipt, share.reason, route),
                       nb::make_tuple(to_string(evidence.kind), to_string(evidence.witness),
                                      to_string(evidence.scope)));
  }
  return out;
}

// Runs of one route are summed; the reason is that of the longest.
nb::dict plan_routes(const Plan& plan) {
  nb::dict out;
  for (const Route route : all_routes) {
    std::uint64_t bytes = 0;
    std::uint64_t segments = 0;
    const Run* longest = nullptr;
    for (std::size_t i = 0; i < plan.run_count; ++i) {
      const Run& run = plan.runs[i];
      if (run.route != route) continue;
      bytes += run.file.size_bytes;
      segments += segment_count(run);
      if (longest == nullptr || run.file.size_bytes > longest->file.size_bytes) longest = &run;
    }
    if (longest == nullptr) continue;
    out[to_string(route)] = nb::make_tuple(bytes, segments, reason(plan, longest->reason, route));
  }
  return out;
}

nb::bytes to_array_bytes(const std::vector<std::uint64_t>& numbers) {
  return nb::bytes(numbers.data(), numbers.size() * sizeof(std::uint64_t));
}

nb::object receipt_ranges(const Receipt& receipt) {
  if (!receipt.ranges) return nb::none();
  return nb::make_tuple(to_array_bytes(receipt.ranges->offset),
                        to_array_bytes(receipt.ranges->wanted_bytes),
                        to_array_bytes(receipt.ranges->moved_bytes));
}

nb::object settings_of(const std::shared_ptr<const Settings>& settings) {
  return settings ? nb::object(settings_to_dict(*settings)) : nb::object(nb::dict());
}

template <class T>
void restore(T& to, std::optional<T> value) {
  if (!value) {
    throw nb::value_error(
        "this pickle was made by another version of straightway, or is damaged; "
        "to_json() is for keeping");
  }
  new (&to) T(std::move(*value));
}

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

template <class T, class Unpack>
void bind_value(nb::class_<T>& type, Unpack unpack) {
  type.def("__eq__", [](const T& a, const T& b) { return a == b; })
      .def("to_text", [](const T& self) { return to_text(self.to_text()); })
      .def("to_json", [](const T& self) { return to_text(self.to_json()); })
      .def("refused", [](const T& self) { return refused(self); })
      .def("settings", [](const T& self) { return settings_of(self.settings); })
      .def("path", [](const T& self) { return to_text(self.file ? self.file->path : ""); })
      .def("__getstate__",
           [](const T& self) {
             const std::string bytes = pack(self);
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def("__setstate__",
           [unpack](T& self, const nb::bytes& bytes) { restore(self, unpack(view(bytes))); });
}

void bind_receipt(nb::module_& module) {
  nb::class_<Receipt> type(module, "Receipt");
  bind_value(type, unpack_receipt);
  type.def_prop_ro("direction", [](const Receipt& r) { return to_string(r.direction); })
      .def_prop_ro("device", [](const Receipt& r) { return device_name(r.memory); })
      .def_ro("offset", &Receipt::file_offset)
      .def_ro("wanted_bytes", &Receipt::wanted_bytes)
      .def_ro("moved_bytes", &Receipt::moved_bytes)
      .def_ro("ended_early", &Receipt::ended_early)
      .def_ro("end_of_file", &Receipt::end_of_file)
      .def_ro("retries", &Receipt::retries)
      .def_ro("fallbacks", &Receipt::fallbacks)
      .def_ro("fallback_code", &Receipt::fallback_code)
      .def_ro("disk_measured", &Receipt::disk_measured)
      .def_ro("disk_bytes", &Receipt::disk_bytes)
      .def("found",
           [](const Receipt& r) {
             return nb::make_tuple(r.found.hot_bytes, r.found.cold_bytes, r.found.unknown_bytes);
           })
      .def_ro("threads", &Receipt::threads)
      .def_ro("pinned_bytes", &Receipt::pinned_bytes)
      .def_ro("pin_bytes", &Receipt::pin_bytes)
      .def("times",
           [](const Receipt& r) {
             return nb::make_tuple(r.times.queued_ns, r.times.started_ns, r.times.first_byte_ns,
                                   r.times.done_ns);
           })
      .def("routes", receipt_routes)
      .def("ranges", receipt_ranges);
}

void bind_plan(nb::module_& module) {
  nb::class_<Plan> type(module, "Plan");
  bind_value(type, unpack_plan);
  type.def_prop_ro("direction", [](const Plan& p) { return to_string(p.request.direction); })
      .def_prop_ro("device", [](const Plan& p) { return device_name(p.request.memory); })
      .def_prop_ro("offset", [](const Plan& p) { return p.request.file.offset; })
      .def_prop_ro("wanted_bytes", [](const Plan& p) { return p.request.file.size_bytes; })
      .def("failure",
           [](const Plan& p) -> nb::object {
             if (p.failure == Reason::none) return nb::none();
             return reason(p, p.failure, Route::nvfs);
           })
      .def("routes", plan_routes);
}

template <class T, class Show>
void put(nb::dict& out, const char* name, const Setting<T>& setting, Show show) {
  out[name] = nb::make_tuple(show(setting.value), to_string(setting.origin));
}

}  // namespace

nb::dict settings_to_dict(const Settings& settings) {
  const auto word = [](auto value) { return nb::str(to_string(value)); };
  const auto number = [](std::uint64_t value) { return nb::int_(value); };
  nb::dict out;
  put(out, "policy", settings.policy, word);
  put(out, "cache", settings.cache, word);
  put(out, "evidence", settings.evidence, word);
  put(out, "threads", settings.threads, number);
  put(out, "pinned_bytes", settings.pinned_bytes, number);
  put(out, "pin_bytes", settings.pin_bytes, number);
  put(out, "ledger", settings.ledger, [](bool value) { return nb::bool_(value); });
  put(out, "vendor_library", settings.vendor_library,
      [](const std::string& value) { return nb::str(value.c_str()); });
  return out;
}

void bind_values(nb::module_& module) {
  bind_receipt(module);
  bind_plan(module);
}

}  // namespace straightway::python
