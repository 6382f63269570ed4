#include "plan/effort.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "plan/runs.hpp"
#include "plan/units.hpp"

namespace straightway::plan {
namespace {

// By the routes whose bytes a copier takes through the page cache or into the ring.
bool takes_copiers(const Plan& plan) {
  const auto* end = plan.runs.data() + plan.run_count;
  return std::any_of(plan.runs.data(), end, [](const Run& run) {
    return run.route == Route::staged || run.route == Route::buffered;
  });
}

bool writes_to_cache(const Plan& plan) {
  const auto* end = plan.runs.data() + plan.run_count;
  return plan.request.direction == Direction::write &&
         std::all_of(plan.runs.data(), end, [](const Run& run) { return !run.direct_io; });
}

bool is_direct(const Plan& plan) {
  const auto* end = plan.runs.data() + plan.run_count;
  return std::all_of(plan.runs.data(), end, [](const Run& run) {
    return run.direct_io || run.reason == Reason::edge_block;
  });
}

CopierBound bound_of_budget(const Settings& settings, const MachineFacts& machine) {
  if (settings.threads.value > 0) {
    const bool is_set = settings.threads.origin != Origin::built_in;
    return is_set ? CopierBound::setting : CopierBound::neighbours;
  }
  if (machine.cpus > copiers_limit) return CopierBound::link;
  return machine.quota_cpus == machine.cpus ? CopierBound::quota : CopierBound::cpus;
}

const char* sentence_of(CopierBound bound) {
  switch (bound) {
    case CopierBound::calling_thread:
      return "so small a transfer stays on the calling thread";
    case CopierBound::one_writer:
      return "more make no write into the page cache faster";
    case CopierBound::quota:
      return "the CPUs that the cgroup's quota allows";
    case CopierBound::cpus:
      return "the CPUs that this process may use";
    case CopierBound::link:
      return "as many as fill a PCIe 5 link, and no more start than it takes";
    case CopierBound::disk:
      return "as many pieces as a disk has use for at once";
    case CopierBound::neighbours:
      return "the CPUs that other programs of this user leave, which copy at this time";
    default:
      return "";
  }
}

}  // namespace

const char* to_string(CopierBound bound) {
  constexpr const char* words[] = {"none", "calling-thread", "one-writer", "setting",   "quota",
                                   "cpus", "link",           "disk",       "neighbours"};
  return words[static_cast<std::size_t>(bound)];
}

std::uint32_t thread_budget(const Settings& settings, std::uint32_t cpus) {
  const auto wanted = static_cast<std::uint32_t>(settings.threads.value);
  return wanted > 0 ? wanted : std::clamp(cpus, 1U, copiers_limit);
}

std::uint32_t fair_copiers(std::uint32_t wanted, std::uint32_t cpus,
                           std::vector<std::uint32_t> others) {
  std::sort(others.begin(), others.end());
  auto left = static_cast<std::size_t>(cpus);
  auto takers = others.size() + 1;
  for (const auto other : others) {
    if (other > left / takers) break;
    left -= other;
    --takers;
  }
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(left / takers, 1, wanted));
}

Effort effort_of(const Plan& plan) {
  if (!takes_copiers(plan)) return {};
  const auto& settings = settings_of(plan);
  const auto& machine = machine_of(plan);
  const bool on_device = plan.request.memory.space == SpaceKind::cuda;
  Effort effort{thread_budget(settings, machine.cpus), bound_of_budget(settings, machine),
                on_device ? settings.pinned_bytes.value : 0};
  if (plan.request.file.size_bytes <= inline_limit_bytes) {
    effort.bound = CopierBound::calling_thread;
  } else if (on_device && writes_to_cache(plan)) {
    effort.bound = CopierBound::one_writer;
  } else {
    if (on_device && is_direct(plan) && effort.most_copiers > direct_copiers_limit) {
      effort.most_copiers = direct_copiers_limit;
      effort.bound = CopierBound::disk;
    }
    return effort;
  }
  effort.most_copiers = 1;
  return effort;
}

std::string describe(const Effort& effort, const Settings& settings) {
  if (effort.bound == CopierBound::none) return {};
  const auto why = effort.bound == CopierBound::setting
                       ? fmt::format("threads={} ({})", settings.threads.value,
                                     to_string(settings.threads.origin))
                       : std::string(sentence_of(effort.bound));
  auto text =
      fmt::format("{}{}: {}", effort.most_copiers > 1 ? "at most " : "", effort.most_copiers, why);
  if (effort.most_pinned_bytes > 0) {
    text += fmt::format("; at most {} of pinned memory", format_bytes(effort.most_pinned_bytes));
    if (settings.pinned_bytes.origin != Origin::built_in) {
      text += fmt::format(" (pinned_bytes, {})", to_string(settings.pinned_bytes.origin));
    }
  }
  return text;
}

}  // namespace straightway::plan
