#include "api/second_descriptor.hpp"

#include <cerrno>
#include <utility>

#include "os/facts.hpp"
#include "plan/runs.hpp"

namespace straightway {
namespace {

Error direct_refusal(const Plan& plan, int code) {
  const bool no_descriptor = code == EMFILE || code == ENFILE;
  return {no_descriptor ? ErrorKind::too_many_files : ErrorKind::route_refused,
          ErrorOrigin::system,
          code,
          "open with O_DIRECT",
          plan.file->path,
          {},
          os::errno_text(code),
          no_descriptor ? "close files, or raise the limit (ulimit -n)"
                        : "use policy auto, which falls back to the page cache"};
}

bool needs_direct(ColdWay way) { return way == ColdWay::direct || way == ColdWay::nvfs; }

}  // namespace

bool may_fall_back(const Plan& plan) { return plan.settings->policy.value != Policy::direct; }

bool uses_direct(const Plan& plan) {
  bool uses = false;
  for (std::uint8_t i = 0; i < plan.run_count; ++i) {
    uses |= plan.runs[i].direct_io || needs_direct(plan.runs[i].cold);
  }
  return uses;
}

Result<void> secure_direct(Plan& plan, OpenFile& file) {
  if (!uses_direct(plan) || file.ref(true).direct_fd >= 0) return {};
  if (!may_fall_back(plan)) return direct_refusal(plan, file.direct_code());
  auto& counters = plan.cufile.counters;  // all that was to go the vendor's way needs it
  counters.posix += std::exchange(counters.nvfs, 0) + std::exchange(counters.p2pdma, 0);
  for (std::uint8_t i = 0; i < plan.run_count; ++i) {
    auto& run = plan.runs[i];
    if (needs_direct(run.cold)) {
      run.cold = ColdWay::trimmed;
      run.cold_reason = Reason::cold_trimmed;
    }
    if (!run.direct_io) continue;
    run.direct_io = false;
    run.align_bytes = 1;
    run.reason = Reason::fell_back;
    if (plan::may_take_vendor(run, plan.request.memory.space)) {
      plan.refused[index(run.route)] = Reason::no_direct_io;
      plan.refused[index(Route::staged)] = Reason::none;
      run = plan::staged_run(plan, Reason::fell_back, run.file);
    }
    if (run.route != Route::direct_host) continue;
    run.route = Route::buffered;
    plan.refused[index(Route::direct_host)] = Reason::fell_back;
    plan.refused[index(Route::buffered)] = Reason::none;
  }
  return {};
}

void count_refused_direct(Receipt& receipt, const Plan& plan, const OpenFile& file) {
  for (std::uint8_t i = 0; i < plan.run_count; ++i) {
    if (plan.runs[i].reason != Reason::fell_back) continue;
    ++receipt.fallbacks;
    if (receipt.fallback_code == 0) receipt.fallback_code = file.direct_code();
  }
}

}  // namespace straightway
