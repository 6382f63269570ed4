// The cuFile layer as the vendor's library answers, measured in compatibility mode: how a request
// is cut into parts, which way the parts go, and what its counters show.

#include <algorithm>
#include <limits>
#include <numeric>

#include "plan/cut.hpp"
#include "plan/direct_paths.hpp"
#include "plan/planner.hpp"
#include "plan/runs.hpp"

namespace straightway::plan {
namespace {

constexpr std::uint64_t block_bytes = 4096;           // of its O_DIRECT parts, on every machine
constexpr std::uint64_t rounding_bytes = 64 << 10;    // of equal parts of a registered buffer
constexpr std::uint64_t merged_rest_bytes = 1 << 20;  // unregistered: joins the part before it
constexpr std::uint64_t nothing_above = std::numeric_limits<std::uint64_t>::max();

std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  return a != 0 && b > nothing_above / a ? nothing_above : a * b;
}

Cut registered_parts(const FileRange& request, std::uint64_t threshold, std::uint64_t parallelism) {
  if (request.size_bytes <= product(threshold, parallelism)) return even_cut(request, threshold);
  const std::uint64_t equal = divide_up(request.size_bytes, parallelism);
  return even_cut(request, product(divide_up(equal, rounding_bytes), rounding_bytes));
}

Cut unregistered_parts(const FileRange& request, std::uint64_t threshold,
                       std::uint64_t parallelism) {
  const std::uint64_t size = request.size_bytes;
  if (size > product(threshold, parallelism)) {
    return {request.offset, size, size / parallelism, parallelism};
  }
  const std::uint64_t beyond_last = size > threshold ? size - threshold : 0;
  if (beyond_last <= merged_rest_bytes) return even_cut(request, size);
  return {request.offset, size, threshold,
          divide_up(beyond_last - merged_rest_bytes, threshold) + 1};
}

struct Way {
  bool refused = false;
  Route route = Route::staged;
  Reason reason = Reason::none;
};

// Beside a usable nvidia-fs the vendor's library has it on by the user's own settings alone, of
// which the KvikIO door does not read the file.
bool asks_for_p2pdma(const Plan& plan) {
  const MachineFacts& machine = machine_of(plan);
  const bool by_library = machine.p2pdma_pages && !wants_p2pdma(machine, false);
  return settings_of(plan).cufile.use_pci_p2pdma.value ||
         (plan.request.door == Door::kvikio && by_library);
}

// P2PDMA, where it is switched on, goes before nvidia-fs.
Way way_of(const Plan& plan) {
  const CufileSettings& settings = settings_of(plan).cufile;
  const FileFacts& file = file_of(plan);
  const MachineFacts& machine = machine_of(plan);
  if (plan.request.memory.space == SpaceKind::host) {
    return {.route = Route::buffered, .reason = Reason::cufile_host_memory};
  }
  if (settings.force_compat_mode.value) return {.reason = Reason::force_compat};
  if (asks_for_p2pdma(plan) && direct_refusal(Route::p2pdma, file, machine) == Reason::none) {
    return {.route = Route::p2pdma, .reason = Reason::direct_available};
  }
  if (direct_refusal(Route::nvfs, file, machine) == Reason::none) {
    return {.route = Route::nvfs, .reason = Reason::direct_available};
  }
  const bool allowed = settings.allow_compat_mode.value;
  return {.refused = !allowed, .reason = allowed ? Reason::allow_compat : Reason::refused_compat};
}

// How many of first, first + step, ... (n of them) are multiples of the block. They come round with
// a period of at most 4096.
std::uint64_t aligned_among(std::uint64_t first, std::uint64_t step, std::uint64_t n) {
  const std::uint64_t period = block_bytes / std::gcd(step % block_bytes, block_bytes);
  for (std::uint64_t i = 0; i < std::min(n, period); ++i) {
    if ((first + i * step) % block_bytes == 0) return (n - 1 - i) / period + 1;
  }
  return 0;
}

// The aligned parts of n requests, cut alike, that start step bytes apart.
std::uint64_t aligned_parts(const Cut& parts, std::uint64_t step, std::uint64_t n) {
  if (parts.count == 0 || n == 0) return 0;
  std::uint64_t aligned = 0;
  if (parts.count > 1 && parts.piece_bytes % block_bytes == 0) {
    aligned = aligned_among(parts.offset, step, n) * (parts.count - 1);
  }
  const FileRange last = parts.piece(parts.count - 1);
  if (last.size_bytes % block_bytes == 0) aligned += aligned_among(last.offset, step, n);
  return aligned;
}

// The requests of this layer: all but the last are cut alike.
struct Requests {
  FileRange first;
  FileRange last;
  std::uint64_t count = 0;
  std::uint64_t step_bytes = 0;
};

Requests requests_of(const Plan& plan) {
  const Cut& tasks = plan.front.tasks;
  if (!plan.front.used) return {plan.request.file, plan.request.file, 1, 0};
  return {tasks.piece(0), tasks.piece(tasks.count - 1), tasks.count, tasks.piece_bytes};
}

// Host memory moves no counter of this layer. An unaligned write on the direct path is completed
// around its edges by POSIX and counted there; an unaligned read goes through a buffer of the
// library and stays direct.
LayerCounters count(const Plan& plan, const Requests& requests, Route route) {
  LayerCounters counters;
  if (route == Route::buffered) return counters;
  const CufileDecision& cufile = plan.cufile;
  counters.n = cufile.parts.count * (requests.count - 1) + cufile.last_parts.count;
  std::uint64_t direct = 0;
  if (route != Route::staged) {
    direct = counters.n;
    if (plan.request.direction == Direction::write) {
      direct = aligned_parts(cufile.parts, requests.step_bytes, requests.count - 1) +
               aligned_parts(cufile.last_parts, 0, 1);
    }
  }
  (route == Route::p2pdma ? counters.p2pdma : counters.nvfs) = direct;
  counters.posix = counters.n - direct;
  return counters;
}

}  // namespace

Cut even_cut(const FileRange& range, std::uint64_t piece_bytes) {
  if (range.size_bytes == 0) return {range.offset, 0, 0, 0};
  return {range.offset, range.size_bytes, std::min(piece_bytes, range.size_bytes),
          divide_up(range.size_bytes, piece_bytes)};
}

Cut cufile_parts(const FileRange& request, SpaceKind space, bool registered,
                 const CufileSettings& settings) {
  const std::uint64_t threshold =
      product(std::max<std::uint64_t>(1, settings.min_io_threshold_size_kb.value), 1024);
  const std::uint64_t parallelism = settings.max_request_parallelism.value;
  const bool parallel =
      settings.parallel_io.value && settings.max_io_threads.value != 0 && parallelism != 0;
  if (space == SpaceKind::host || !parallel || request.size_bytes <= threshold) {
    return even_cut(request, std::max<std::uint64_t>(1, request.size_bytes));
  }
  return registered ? registered_parts(request, threshold, parallelism)
                    : unregistered_parts(request, threshold, parallelism);
}

Reason cufile_refusal(const Plan& plan) {
  return way_of(plan).refused ? Reason::refused_compat : Reason::none;
}

void cufile_layer(Plan& plan) {
  CufileDecision& cufile = plan.cufile;
  const Way way = way_of(plan);
  cufile = {};
  cufile.used = true;
  cufile.refused = way.refused;
  cufile.reason = way.reason;
  if (way.refused) plan.failure = Reason::refused_compat;
  if (way.refused || plan.request.file.size_bytes == 0) return;
  const Requests requests = requests_of(plan);
  const CufileSettings& settings = settings_of(plan).cufile;
  const auto cut = [&](const FileRange& request) {
    return cufile_parts(request, plan.request.memory.space, plan.request.registered, settings);
  };
  cufile.parts = cut(requests.first);
  cufile.last_parts = cut(requests.last);
  cufile.counters = count(plan, requests, way.route);
  const bool direct = way.reason == Reason::direct_available;
  if (direct && cufile.counters.posix == cufile.counters.n) cufile.reason = Reason::unaligned;
}

}  // namespace straightway::plan
