#include "api/vendor_call.hpp"

#include <algorithm>
#include <utility>

#include "os/cufile_codes.hpp"
#include "plan/planner.hpp"
#include "plan/runs.hpp"

namespace straightway {
namespace {

// Says something of the memory, nothing of the storage.
bool speaks_of_memory(std::int32_t code) {
  constexpr std::int32_t shorter_registration = 5017;
  return code == shorter_registration || os::lacks_room(code);
}

// why_not: why the library cannot be used for this call, or empty.
void plan_again(Plan& plan, const CallRange& range, const std::string& why_not) {
  auto machine = range.file->engine->machine(true);
  if (!why_not.empty() && machine->vendor_why_not.empty()) {
    auto changed = std::make_shared<MachineFacts>(*machine);
    changed->vendor_why_not = why_not;
    machine = std::move(changed);
  }
  plan::Facts facts{vendor_facts(*range.file), std::move(machine), nullptr, {}, false};
  add_pins(facts, *range.file);
  plan = plan::make_plan(plan.request, facts, plan.settings);
}

Error copied_error(const Receipt& receipt) {
  return {ErrorKind::route_refused,
          ErrorOrigin::cufile,
          0,
          std::string(to_string(receipt.direction)) + " under policy direct",
          receipt.file ? receipt.file->path : "",
          receipt.file_offset,
          "the vendor's library took the transfer and copied it through host memory, by its own or "
          "by nvidia-fs's counters",
          "the bytes have moved; use policy auto, and see `straightway check FILE`"};
}

// The library is behind both.
constexpr Route vendor_routes[] = {Route::nvfs, Route::p2pdma};

std::uint64_t& layer_count(Receipt& receipt, Route route) {
  return route == Route::nvfs ? receipt.layer.nvfs : receipt.layer.p2pdma;
}

std::uint64_t vendor_bytes(const Receipt& receipt) {
  return receipt.routes[index(Route::nvfs)].bytes + receipt.routes[index(Route::p2pdma)].bytes;
}

void add_share(RouteShare& to, RouteShare& from) {
  to.bytes += from.bytes;
  to.segments += from.segments;
  if (to.reason == Reason::none) to.reason = from.reason;
  from = {};
}

// All that went through the library was copied by it.
void count_as_copied(Receipt& receipt) {
  auto& staged = receipt.routes[index(Route::staged)];
  for (const auto route : vendor_routes) {
    auto& direct = receipt.routes[index(route)];
    if (direct.bytes > 0) receipt.refused[index(route)] = Reason::vendor_copies;
    add_share(staged, direct);
    receipt.layer.posix += std::exchange(layer_count(receipt, route), 0);
  }
  staged.reason = Reason::vendor_copies;
  staged.evidence = {EvidenceKind::claimed, Witness::vendor_library, Scope::process};
  receipt.refused[index(Route::staged)] = Reason::none;
}

// All that went through the library stands under the way that was counted.
void count_as(Receipt& receipt, Route way, const Evidence& evidence) {
  const auto other = way == Route::nvfs ? Route::p2pdma : Route::nvfs;
  auto& planned = receipt.routes[index(other)];
  auto& share = receipt.routes[index(way)];
  if (planned.bytes > 0) {
    add_share(share, planned);
    receipt.refused[index(way)] = Reason::none;
    auto& refused = receipt.refused[index(other)];
    if (refused == Reason::none) refused = Reason::not_preferred;
    layer_count(receipt, way) += std::exchange(layer_count(receipt, other), 0);
  }
  share.evidence = evidence;
}

}  // namespace

bool takes_vendor(const Plan& plan) {
  const auto* end = plan.runs.data() + plan.run_count;
  return std::any_of(plan.runs.data(), end, [&](const Run& run) {
    return plan::may_take_vendor(run, plan.request.memory.space);
  });
}

std::shared_ptr<const FileFacts> vendor_facts(OpenFile& file) {
  const auto known = file.engine->vendor_ways().known(file.storage());
  const auto refused = file.vendor_code();
  if (known.code == 0 && !known.copies && refused == 0) return file.facts;
  auto facts = std::make_shared<FileFacts>(*file.facts);
  facts->vendor_code = refused != 0 ? refused : known.code;
  facts->vendor_copies = known.copies;
  return facts;
}

bool try_vendor(Plan& plan, const CallRange& range) {
  if (!takes_vendor(plan)) return false;
  auto& file = *range.file;
  if (file.cufile() && !transport::CufileLibrary::inside()) return false;
  // secure_direct says why there is none.
  if (file.ref(true).direct_fd < 0) return false;
  auto library = file.engine->vendor_library();
  if (library && file.register_with(*library)) {
    const bool as_planned = (*library)->cuts() == plan.machine->vendor_cuts &&
                            (*library)->p2pdma() == plan.machine->p2pdma_pages;
    if (!as_planned) plan_again(plan, range, "");
    return true;
  }
  plan_again(plan, range, library ? "" : library.error().why);
  return true;
}

void count_fallback(const std::vector<Plan>& plans, Receipt& receipt) {
  const auto route = receipt.layer.nvfs > 0 ? Route::nvfs : Route::p2pdma;
  auto& counted = layer_count(receipt, route);
  if (receipt.fallbacks == 0 || counted == 0) return;
  std::uint64_t planned_bytes = 0;
  for (const auto& plan : plans) {
    for (std::size_t i = 0; i < plan.run_count; ++i) {
      if (plan.runs[i].route == route) planned_bytes += plan.runs[i].file.size_bytes;
    }
  }
  const auto moved_bytes = receipt.routes[index(route)].bytes;
  if (planned_bytes == 0 || moved_bytes >= planned_bytes) return;
  const auto share = static_cast<double>(moved_bytes) / static_cast<double>(planned_bytes);
  const auto direct = static_cast<std::uint64_t>(static_cast<double>(counted) * share);
  receipt.layer.posix += counted - direct;
  counted = direct;
}

std::optional<VendorLook> look_before(const std::vector<CallRange>& ranges,
                                      const std::vector<Plan>& plans) {
  if (std::none_of(plans.begin(), plans.end(), takes_vendor)) return {};
  auto library = ranges.front().file->engine->vendor_ways().loaded();
  if (!library) return {};
  auto before = library->counts(plans.front().request.direction);
  return VendorLook{std::move(library), before};
}

Result<void> judge_vendor(const std::vector<CallRange>& ranges, const std::vector<Plan>& plans,
                          const VendorLook& look, Receipt& receipt) {
  if (vendor_bytes(receipt) == 0) return {};
  using drive::CufileSaid;
  const auto after = look.vendor->counts(receipt.direction);
  const auto said = drive::what_counters_say(look.before, after, vendor_bytes(receipt));
  const Evidence claim{EvidenceKind::claimed, Witness::vendor_library, Scope::process};
  // Of p2pdma it is not the kernel that claims it.
  auto& p2pdma = receipt.routes[index(Route::p2pdma)];
  if (p2pdma.bytes > 0) p2pdma.evidence = {claim.kind, claim.witness, Scope::request};
  if (said == CufileSaid::kernel_counted) {
    count_as(receipt, Route::nvfs, {EvidenceKind::observed, Witness::nvidia_fs, Scope::machine});
  } else if (said == CufileSaid::library_counted) {
    count_as(receipt, Route::nvfs, claim);
  } else if (said == CufileSaid::p2pdma_counted) {
    count_as(receipt, Route::p2pdma, claim);
  } else if (said == CufileSaid::copied) {
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (!takes_vendor(plans[i])) continue;
      ranges[i].file->engine->vendor_ways().learn_copies(ranges[i].file->storage());
    }
    count_as_copied(receipt);
    if (receipt.settings->policy.value == Policy::direct) return copied_error(receipt);
  }
  return {};
}

void learn_of_vendor(const std::vector<CallRange>& ranges, const std::vector<Plan>& plans,
                     const Receipt& receipt, const std::optional<Error>& error) {
  const bool fell_back =
      std::any_of(std::begin(vendor_routes), std::end(vendor_routes),
                  [&](Route route) { return receipt.refused[index(route)] == Reason::fell_back; });
  const bool refused =
      error && error->kind == ErrorKind::route_refused && error->origin == ErrorOrigin::cufile;
  const auto code = fell_back ? receipt.fallback_code : refused ? error->code : 0;
  if (code == 0 || speaks_of_memory(code)) return;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (!takes_vendor(plans[i])) continue;
    ranges[i].file->engine->vendor_ways().learn_refusal(ranges[i].file->storage(), code);
  }
}

}  // namespace straightway
