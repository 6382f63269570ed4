#include "api/vendor_call.hpp"

#include <algorithm>
#include <utility>

#include "plan/planner.hpp"

namespace straightway {
namespace {

// Says something of the memory, nothing of the storage.
constexpr std::int32_t shorter_registration = 5017;

bool uses_vendor(const Plan& plan) {
  const auto* end = plan.runs.data() + plan.run_count;
  return std::any_of(plan.runs.data(), end, [](const Run& run) {
    return run.route == Route::nvfs || run.cold == ColdWay::nvfs;
  });
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

// All that went through the library was copied by it.
void count_as_copied(Receipt& receipt) {
  auto& nvfs = receipt.routes[index(Route::nvfs)];
  auto& staged = receipt.routes[index(Route::staged)];
  staged.bytes += nvfs.bytes;
  staged.segments += nvfs.segments;
  staged.reason = Reason::vendor_copies;
  staged.evidence = {EvidenceKind::claimed, Witness::vendor_library, Scope::process};
  nvfs = {};
  receipt.refused[index(Route::nvfs)] = Reason::vendor_copies;
  receipt.refused[index(Route::staged)] = Reason::none;
  receipt.layer.posix += std::exchange(receipt.layer.nvfs, 0);
}

}  // namespace

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
  if (!uses_vendor(plan)) return false;
  auto& file = *range.file;
  if (file.cufile() && !transport::CufileLibrary::inside()) return false;
  // secure_direct says why there is none.
  if (file.ref(true).direct_fd < 0) return false;
  auto library = file.engine->vendor_library();
  if (library && file.register_with(*library)) {
    if ((*library)->cuts() != plan.machine->vendor_cuts) plan_again(plan, range, "");
    return true;
  }
  plan_again(plan, range, library ? "" : library.error().why);
  return true;
}

void count_fallback(const std::vector<Plan>& plans, Receipt& receipt) {
  if (receipt.fallbacks == 0 || receipt.layer.nvfs == 0) return;
  std::uint64_t planned_bytes = 0;
  for (const auto& plan : plans) {
    for (std::size_t i = 0; i < plan.run_count; ++i) {
      if (plan.runs[i].route == Route::nvfs) planned_bytes += plan.runs[i].file.size_bytes;
    }
  }
  const auto moved_bytes = receipt.routes[index(Route::nvfs)].bytes;
  if (planned_bytes == 0 || moved_bytes >= planned_bytes) return;
  const auto share = static_cast<double>(moved_bytes) / static_cast<double>(planned_bytes);
  const auto direct = static_cast<std::uint64_t>(static_cast<double>(receipt.layer.nvfs) * share);
  receipt.layer.posix += receipt.layer.nvfs - direct;
  receipt.layer.nvfs = direct;
}

std::optional<VendorLook> look_before(const std::vector<CallRange>& ranges,
                                      const std::vector<Plan>& plans) {
  if (std::none_of(plans.begin(), plans.end(), uses_vendor)) return {};
  auto library = ranges.front().file->engine->vendor_ways().loaded();
  if (!library) return {};
  auto before = library->counts(plans.front().request.direction);
  return VendorLook{std::move(library), before};
}

Result<void> judge_vendor(const std::vector<CallRange>& ranges, const std::vector<Plan>& plans,
                          const VendorLook& look, Receipt& receipt) {
  auto& share = receipt.routes[index(Route::nvfs)];
  if (share.bytes == 0) return {};
  using drive::CufileSaid;
  const auto after = look.library->counts(receipt.direction);
  const auto said = drive::what_counters_say(look.before, after, share.bytes);
  if (said == CufileSaid::kernel_counted) {
    share.evidence = {EvidenceKind::observed, Witness::nvidia_fs, Scope::machine};
  } else if (said == CufileSaid::library_counted) {
    share.evidence = {EvidenceKind::claimed, Witness::vendor_library, Scope::process};
  } else if (said == CufileSaid::copied) {
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (!uses_vendor(plans[i])) continue;
      ranges[i].file->engine->vendor_ways().learn_copies(ranges[i].file->storage());
    }
    count_as_copied(receipt);
    if (receipt.settings->policy.value == Policy::direct) return copied_error(receipt);
  }
  return {};
}

void learn_of_vendor(const std::vector<CallRange>& ranges, const std::vector<Plan>& plans,
                     const Receipt& receipt, const std::optional<Error>& error) {
  const bool fell_back = receipt.refused[index(Route::nvfs)] == Reason::fell_back;
  const bool refused =
      error && error->kind == ErrorKind::route_refused && error->origin == ErrorOrigin::cufile;
  const auto code = fell_back ? receipt.fallback_code : refused ? error->code : 0;
  if (code == 0 || code == shorter_registration) return;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (!uses_vendor(plans[i])) continue;
    ranges[i].file->engine->vendor_ways().learn_refusal(ranges[i].file->storage(), code);
  }
}

}  // namespace straightway
