#include "api/page_cache.hpp"

#include <unistd.h>

#include <algorithm>

#include "api/call.hpp"
#include "os/facts.hpp"

namespace straightway {

plan::Look look_at_cache(const os::Syscalls& syscalls, int fd, const FileRange& range) {
  const auto pages = syscalls.cached_pages(fd, range.offset, range.size_bytes);
  // EPERM: another user's file; ENOSYS: Linux before 6.5. mincore would lie, or take long.
  if (pages < 0) return {};
  const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return {true, std::min(static_cast<std::uint64_t>(pages) * page_bytes, range.size_bytes)};
}

namespace {

// One look at the first window of a plan whose cold MiB have a way of their own.
void look_at_start(Plan& plan, OpenFile& file) {
  if (plan.run_count != 1 || plan.runs[0].cold == ColdWay::same) return;
  FileRange first = plan.runs[0].file;
  first.size_bytes = std::min(first.size_bytes, plan::CacheSteps{}.window_bytes);
  const auto look = look_at_cache(file.engine->syscalls(), file.ref(false).fd, first);
  plan.first_window.hot_bytes = look.resident_bytes;
  plan.first_window.unknown_bytes = look.known ? 0 : first.size_bytes;
  plan.first_window.cold_bytes = look.known ? first.size_bytes - look.resident_bytes : 0;
}

// With the number of copiers that neighbours leave, where that is fewer.
std::shared_ptr<const Settings> beside_neighbours(const std::shared_ptr<const Settings>& settings,
                                                  Engine& engine) {
  if (settings->threads.value > 0) return settings;
  auto& share = engine.copier_share();
  const auto copiers = share.look();
  if (copiers >= share.budget().copiers) return settings;
  auto changed = std::make_shared<Settings>(*settings);
  changed->threads = {copiers, Origin::built_in};
  return changed;
}

}  // namespace

std::uint64_t spare_memory(Direction direction, std::uint64_t largest_bytes,
                           const Settings& settings) {
  if (direction == Direction::write || settings.cache.value != Cache::automatic) return UINT64_MAX;
  if (largest_bytes <= plan::kept_unasked_bytes) return UINT64_MAX;
  return os::spare_memory_bytes().value_or(UINT64_MAX);
}

void use_page_cache(drive::TransferSpec& spec, const os::Syscalls& syscalls) {
  spec.look_up = [&syscalls](int fd, const FileRange& range) {
    return look_at_cache(syscalls, fd, range);
  };
  spec.drop_pages = [&syscalls](int fd, const FileRange& range) {
    syscalls.drop_pages(fd, range.offset, range.size_bytes);
  };
}

Result<Plan> explain_call(Direction direction, const CallRange& range,
                          const std::shared_ptr<const Settings>& settings,
                          const MemoryRange* known) {
  auto plan = plan_call(direction, range, beside_neighbours(settings, *range.file->engine), known,
                        spare_memory(direction, range.size_bytes, *settings));
  if (plan) look_at_start(*plan, *range.file);
  return plan;
}

}  // namespace straightway
