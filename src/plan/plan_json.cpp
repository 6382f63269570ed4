// A plan for programs: the same as its text, with stable keys in snake_case.

#include <nlohmann/json.hpp>

#include "plan/direct_paths.hpp"
#include "plan/effort.hpp"
#include "plan/planner.hpp"
#include "plan/runs.hpp"
#include "straightway/plan.hpp"

namespace straightway {
namespace {

using Json = nlohmann::ordered_json;

Json of(const FileRange& range) {
  return {{"offset", range.offset}, {"size_bytes", range.size_bytes}};
}

Json of(const Cut& cut) {
  return {{"offset", cut.offset},
          {"size_bytes", cut.size_bytes},
          {"piece_bytes", cut.piece_bytes},
          {"count", cut.count}};
}

Json of(const Request& request) {
  return {{"direction", to_string(request.direction)},
          {"door", to_string(request.door)},
          {"file", of(request.file)},
          {"file_size_bytes", request.file_size_bytes},
          {"memory",
           {{"space", to_string(request.memory.space)},
            {"device", request.memory.device},
            {"address", request.memory.address},
            {"size_bytes", request.memory.size_bytes}}},
          {"registered", request.registered},
          {"spare_memory_bytes",
           request.spare_memory_bytes == UINT64_MAX ? Json() : Json(request.spare_memory_bytes)}};
}

Json reason_of(const Plan& plan, Reason reason, Route route) {
  return {{"code", to_string(reason)},
          {"sentence", plan::sentence(reason, route, plan.file.get(), plan.machine.get(),
                                      plan.settings.get(), plan.peer.get())}};
}

Json front_of(const Plan& plan) {
  const FrontDecision& front = plan.front;
  if (!front.used) return nullptr;
  return {{"to_cufile", front.to_cufile},
          {"on_caller_thread", front.on_caller_thread},
          {"reason", reason_of(plan, front.reason, Route::buffered)},
          {"tasks", of(front.tasks)}};
}

Json cufile_of(const Plan& plan) {
  const CufileDecision& cufile = plan.cufile;
  if (!cufile.used) return nullptr;
  return {{"refused", cufile.refused},
          {"reason", reason_of(plan, cufile.reason, Route::staged)},
          {"parts", of(cufile.parts)},
          {"last_parts", of(cufile.last_parts)},
          {"counters",
           {{"n", cufile.counters.n},
            {"nvfs", cufile.counters.nvfs},
            {"p2pdma", cufile.counters.p2pdma},
            {"posix", cufile.counters.posix}}}};
}

Json of(const CacheFound& found) {
  if (!found.looked()) return nullptr;
  return {{"hot_bytes", found.hot_bytes},
          {"cold_bytes", found.cold_bytes},
          {"unknown_bytes", found.unknown_bytes}};
}

Json cold_of(const Plan& plan, const Run& run) {
  if (run.cold == ColdWay::same) return nullptr;
  const char* way = run.cold == ColdWay::nvfs
                        ? to_string(plan::vendor_route(plan::machine_of(plan)))
                        : to_string(run.cold);
  return {{"way", way}, {"reason", reason_of(plan, run.cold_reason, run.route)}};
}

Json runs_of(const Plan& plan) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < plan.run_count; ++i) {
    const Run& run = plan.runs[i];
    runs.push_back({{"route", to_string(run.route)},
                    {"reason", reason_of(plan, run.reason, run.route)},
                    {"file", of(run.file)},
                    {"segments", segment_count(run)},
                    {"segment_bytes", run.segment_bytes},
                    {"align_bytes", run.align_bytes},
                    {"direct_io", run.direct_io},
                    {"cold", cold_of(plan, run)}});
  }
  return runs;
}

Json refused_of(const Plan& plan) {
  Json refused = Json::object();
  for (const Route route : all_routes) {
    const Reason reason = plan.refused[index(route)];
    if (reason != Reason::none) refused[to_string(route)] = reason_of(plan, reason, route);
  }
  return refused;
}

Json of(const FileFacts& file) {
  return {{"path", file.path},
          {"filesystem", file.filesystem},
          {"mount_point", file.mount_point},
          {"device", file.device},
          {"device_driver", file.device_driver},
          {"is_network", file.is_network},
          {"is_block_device", file.is_block_device},
          {"direct_offset_align_bytes", file.direct_offset_align_bytes},
          {"direct_memory_align_bytes", file.direct_memory_align_bytes},
          {"dontcache", file.dontcache},
          {"vendor_code", file.vendor_code},
          {"vendor_copies", file.vendor_copies}};
}

Json of(const MachineFacts& machine) {
  Json built = Json::array();
  for (const Route route : all_routes) {
    if ((machine.routes_built >> index(route) & 1U) != 0) built.push_back(to_string(route));
  }
  return {{"page_bytes", machine.page_bytes},
          {"cpus", machine.cpus},
          {"quota_cpus", machine.quota_cpus},
          {"cuda_driver", machine.cuda_driver},
          {"cuda_devices", machine.cuda_devices},
          {"cuda_why_not", machine.cuda_why_not},
          {"cuda_simulated", machine.cuda_simulated},
          {"nvfs_loaded", machine.nvfs_loaded},
          {"nvfs_version", machine.nvfs_version},
          {"nvfs_nodes", machine.nvfs_nodes},
          {"vendor_library", machine.vendor_library},
          {"vendor_path", machine.vendor_path},
          {"vendor_version", machine.vendor_version},
          {"vendor_why_not", machine.vendor_why_not},
          {"run_udev", machine.run_udev},
          {"wsl", machine.wsl},
          {"p2pdma_pages", machine.p2pdma_pages},
          {"uring", machine.uring},
          {"uring_why_not", machine.uring_why_not},
          {"kernel", machine.kernel},
          {"routes_built", built}};
}

Json of(const PeerFacts& peer) {
  return {{"device", peer.device},
          {"published", peer.published},
          {"storage", to_string(peer.storage)},
          {"bridge", to_string(peer.bridge)},
          {"read_trial", to_string(peer.read_trial)},
          {"write_trial", to_string(peer.write_trial)},
          {"trial_code", peer.trial_code},
          {"holes", peer.holes}};
}

template <class T>
Json setting(const T& value, Origin origin) {
  return {{"value", value}, {"origin", to_string(origin)}};
}

template <class T>
Json of(const Setting<T>& given) {
  if constexpr (std::is_enum_v<T>) {
    return setting(to_string(given.value), given.origin);
  } else {
    return setting(given.value, given.origin);
  }
}

Json of(const Settings& settings) {
  const FrontSettings& front = settings.front;
  const CufileSettings& cufile = settings.cufile;
  return {{"policy", of(settings.policy)},
          {"cache", of(settings.cache)},
          {"evidence", of(settings.evidence)},
          {"threads", of(settings.threads)},
          {"pinned_bytes", of(settings.pinned_bytes)},
          {"pin_bytes", of(settings.pin_bytes)},
          {"ledger", of(settings.ledger)},
          {"vendor_library", of(settings.vendor_library)},
          {"front",
           {{"compat_mode", of(front.compat_mode)},
            {"threads", of(front.threads)},
            {"task_size_bytes", of(front.task_size_bytes)},
            {"gds_threshold_bytes", of(front.gds_threshold_bytes)}}},
          {"cufile",
           {{"parallel_io", of(cufile.parallel_io)},
            {"max_io_threads", of(cufile.max_io_threads)},
            {"max_io_queue_depth", of(cufile.max_io_queue_depth)},
            {"min_io_threshold_size_kb", of(cufile.min_io_threshold_size_kb)},
            {"max_request_parallelism", of(cufile.max_request_parallelism)},
            {"max_direct_io_size_kb", of(cufile.max_direct_io_size_kb)},
            {"allow_compat_mode", of(cufile.allow_compat_mode)},
            {"force_compat_mode", of(cufile.force_compat_mode)},
            {"use_pci_p2pdma", of(cufile.use_pci_p2pdma)}}}};
}

Json of(const plan::Effort& effort) {
  return {{"most_copiers", effort.most_copiers},
          {"bound", to_string(effort.bound)},
          {"most_pinned_bytes", effort.most_pinned_bytes}};
}

Json failure_of(const Plan& plan) {
  if (plan.failure == Reason::none) return nullptr;
  const SpaceKind space = plan.request.memory.space;
  const Route device = space == SpaceKind::peer ? Route::p2pdma : Route::nvfs;
  return reason_of(plan, plan.failure, space == SpaceKind::host ? Route::direct_host : device);
}

}  // namespace

std::string Plan::to_json() const {
  const Json json = {{"request", of(request)},
                     {"front", front_of(*this)},
                     {"cufile", cufile_of(*this)},
                     {"runs", runs_of(*this)},
                     {"first_window", of(first_window)},
                     {"effort", of(plan::effort_of(*this))},
                     {"refused", refused_of(*this)},
                     {"failure", failure_of(*this)},
                     {"pin_bytes", pin_bytes},
                     {"facts",
                      {{"file", of(plan::file_of(*this))},
                       {"machine", of(plan::machine_of(*this))},
                       {"peer", peer ? of(*peer) : Json()}}},
                     {"settings", of(plan::settings_of(*this))}};
  // A path need not be UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace straightway
