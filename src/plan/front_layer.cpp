// The front layer as KvikIO 26.10 documents it: which engine serves a call, and in what tasks.

#include <algorithm>
#include <cstdint>

#include "plan/cut.hpp"
#include "plan/planner.hpp"
#include "plan/runs.hpp"

namespace straightway::plan {
namespace {

// KvikIO's own test of whether cuFile is usable; it looks at nothing else, not at the driver, the
// file system or nvidia-fs.
bool cufile_seems_usable(const MachineFacts& machine) {
  return machine.vendor_library && machine.run_udev && !machine.wsl;
}

// Why the file was not opened for cuFile; none: it was.
Reason posix_reason(const Plan& plan) {
  const CompatMode mode = settings_of(plan).front.compat_mode.value;
  if (mode == CompatMode::on) return Reason::compat_mode_on;
  if (mode == CompatMode::off) return Reason::none;
  // Under AUTO the descriptor of cuFile is opened O_DIRECT, and any failure there, or of its
  // registration, silently means POSIX.
  const bool registers =
      file_of(plan).direct_offset_align_bytes != 0 && cufile_refusal(plan) == Reason::none;
  return cufile_seems_usable(machine_of(plan)) && registers ? Reason::none
                                                            : Reason::compat_mode_auto;
}

void decide(FrontDecision& front, const Plan& plan, std::uint64_t threshold_bytes) {
  if (plan.request.memory.space == SpaceKind::host) {
    front.reason = Reason::front_host_memory;
  } else if (plan.request.file.size_bytes < threshold_bytes) {
    front.reason = Reason::below_gds_threshold;
    front.on_caller_thread = true;
  } else {
    front.reason = posix_reason(plan);
    front.to_cufile = front.reason == Reason::none;
    if (front.to_cufile) front.reason = Reason::front_tasks;
  }
}

std::uint64_t task_bytes(const Plan& plan) {
  const std::uint64_t page_bytes = machine_of(plan).page_bytes;
  const std::uint64_t size_bytes = plan.request.file.size_bytes;
  const bool whole = plan.front.on_caller_thread || size_bytes <= page_bytes;
  const std::uint64_t task_size_bytes = settings_of(plan).front.task_size_bytes.value;
  return whole ? size_bytes : std::max<std::uint64_t>(1, task_size_bytes);
}

}  // namespace

void front_layer(Plan& plan) {
  FrontDecision& front = plan.front;
  front = {};
  front.used = true;
  decide(front, plan, settings_of(plan).front.gds_threshold_bytes.value);
  front.tasks = even_cut(plan.request.file, task_bytes(plan));
  // OFF admits no other way than cuFile, so what AUTO takes silently is an error there.
  if (front.to_cufile && file_of(plan).direct_offset_align_bytes == 0) {
    plan.failure = Reason::no_direct_io;
  }
}

}  // namespace straightway::plan
