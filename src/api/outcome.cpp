#include "api/outcome.hpp"

#include <cerrno>
#include <utility>

#include "os/facts.hpp"
#include "plan/direct_paths.hpp"
#include "plan/planner.hpp"

namespace straightway {

Error refusal(const Plan& plan) {
  const auto say = [&](Reason reason, Route route) {
    return plan::sentence(reason, route, plan.file.get(), plan.machine.get(), plan.settings.get(),
                          plan.peer.get());
  };
  std::string why;
  for (const auto route : all_routes) {
    const auto reason = plan.refused[index(route)];
    if (reason == Reason::none || reason == Reason::policy_forbids ||
        reason == Reason::space_is_host || reason == Reason::space_is_device ||
        reason == Reason::not_pinned || reason == Reason::pin_lost) {
      continue;
    }
    if (!why.empty()) why += "; ";
    why += std::string("not ") + to_string(route) + ": " + say(reason, route);
    if (plan.request.memory.space != SpaceKind::cuda || !plan.file || !plan.machine) continue;
    const auto lacking = plan::lacking_for(route, *plan.file, *plan.machine);
    const bool is_direct = route == Route::nvfs || route == Route::p2pdma;
    for (std::size_t i = 1; is_direct && i < lacking.count; ++i) {
      why += ", and " + say(lacking.reasons[i], route);
    }
  }
  if (why.empty()) why = say(plan.failure, Route::buffered);
  return {ErrorKind::route_refused,
          ErrorOrigin::straightway,
          0,
          std::string(to_string(plan.request.direction)) + " " +
              std::to_string(plan.request.file.size_bytes) + " bytes under policy " +
              to_string(plan.settings->policy.value) + " of",
          plan.file->path,
          plan.request.file.offset,
          std::move(why),
          "use policy auto, which takes the best way there is"};
}

Receipt begin_receipt(const Plan& plan, std::uint64_t queued_ns) {
  Receipt receipt;
  receipt.direction = plan.request.direction;
  receipt.door = plan.request.door;
  receipt.memory = plan.request.memory;
  receipt.file_offset = plan.request.file.offset;
  receipt.wanted_bytes = plan.request.file.size_bytes;
  receipt.refused = plan.refused;
  receipt.layer = plan.cufile.counters;
  receipt.pin_bytes = plan.pin_bytes;
  receipt.file = plan.file;
  receipt.machine = plan.machine;
  receipt.settings = plan.settings;
  receipt.peer = plan.peer;
  receipt.times.queued_ns = queued_ns;
  return receipt;
}

Result<Receipt> judge_receipt(Receipt receipt, const CallOptions& options) {
  const auto& path = receipt.file->path;
  if (options.exact && receipt.moved_bytes < receipt.wanted_bytes) {
    return Error{ErrorKind::short_transfer,
                 ErrorOrigin::straightway,
                 0,
                 std::string(to_string(receipt.direction)) + " exactly " +
                     std::to_string(receipt.wanted_bytes) + " bytes of",
                 path,
                 receipt.file_offset,
                 "short: got " + std::to_string(receipt.moved_bytes) + " bytes, end of file at " +
                     std::to_string(receipt.end_of_file),
                 "check that the file is complete, or leave exact out"};
  }
  if (receipt.settings->evidence.value != Demand::observed) return receipt;
  for (const auto route : all_routes) {
    const auto& share = receipt.routes[index(route)];
    if (share.bytes == 0 || share.evidence.kind == EvidenceKind::observed) continue;
    return Error{ErrorKind::evidence_missing,
                 ErrorOrigin::straightway,
                 0,
                 std::string(to_string(receipt.direction)) + " with observed evidence",
                 path,
                 receipt.file_offset,
                 std::to_string(share.bytes) + " bytes went by " + to_string(route) +
                     ", and nothing independent confirms it",
                 "the bytes have moved; ask for evidence 'any', or use another policy"};
  }
  return receipt;
}

Result<void> sync_file(const os::Syscalls& syscalls, const OpenFile& file, Sync sync, int fd) {
  if (sync == Sync::none) return {};
  int result = -EINTR;
  while (result == -EINTR) {
    result = sync == Sync::data ? syscalls.fdatasync(fd) : syscalls.fsync(fd);
  }
  if (result >= 0) return {};
  return Error{os::errno_kind(-result),
               ErrorOrigin::system,
               -result,
               "make the write durable",
               file.facts->path,
               {},
               os::errno_text(-result),
               "the bytes may be lost: write them again, and check the drive"};
}

}  // namespace straightway
