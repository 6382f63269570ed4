// What would be faster, and how: only what the receipts of the program themselves show.

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "plan/units.hpp"
#include "run_text.hpp"

namespace straightway::tools {
namespace {

using File = receipt::RunSummary::File;
using Files = std::vector<File>;
using plan::format_bytes;

// Below this a call costs more than its copy, so that their number counts.
constexpr std::uint64_t small_bytes = 256 << 10;
constexpr std::uint64_t many_requests = 100;
// A read of this is shared by several copiers.
constexpr const char* large_text = "4 MiB";

template <class F>
std::uint64_t sum(const Files& files, F value) {
  std::uint64_t total = 0;
  for (const File& file : files) total += value(file);
  return total;
}

bool has_reason(const File& file, Reason reason) {
  return std::ranges::any_of(file.ways, [&](const auto& way) { return way.reason == reason; });
}

std::uint64_t bytes_by(const File& file, Reason reason) {
  std::uint64_t total = 0;
  for (const auto& way : file.ways) total += way.reason == reason ? way.bytes : 0;
  return total;
}

std::string why_nothing(const RunAccount& account) {
  if (!account.obstacle.empty()) {
    return account.obstacle + ": nothing could be put behind the program";
  }
  if (!account.summary.processes.empty()) return "";
  return "no process of it opened cuFile or Straightway here; one that is linked with "
         "libcufile_static.a, or runs in another container, is not seen";
}

std::string small_requests(const Files& files) {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  for (const File& file : files) {
    if (file.requests < many_requests || file.wanted_bytes / file.requests >= small_bytes) continue;
    count += file.requests;
    bytes += file.wanted_bytes;
  }
  if (count == 0) return "";
  return fmt::format(
      "larger requests: {} were of {} on average; from {} on, one is shared by several copiers, "
      "and "
      "Straightway's own File::read_ranges takes many small ones in one call",
      count, format_bytes(bytes / count), large_text);
}

// Storage DMA helps cold bytes on their way into a device; hot ones are fastest from the cache.
std::string direct_path(const Files& files) {
  for (const File& file : files) {
    if (file.space != SpaceKind::cuda || file.direction != Direction::read) continue;
    const bool cold = file.found.cold_bytes > 0 || file.disk_bytes > 0;
    if (!cold || file.refusals.empty()) continue;
    for (const auto& refusal : file.refusals) {
      if (refusal.route != Route::nvfs && refusal.route != Route::p2pdma) continue;
      return fmt::format(
          "storage DMA into the GPU for what is not in the page cache: `straightway check {}` "
          "names everything that it lacks here",
          file.path.empty() ? "FILE" : file.path);
    }
  }
  return "";
}

std::string next_time_hot(const Files& files) {
  const auto kept = sum(files, [](const File& f) { return bytes_by(f, Reason::cold_kept); });
  const auto cold = sum(files, [](const File& f) { return f.found.cold_bytes; });
  if (std::max(kept, cold) == 0) return "";
  return fmt::format(
      "the same again: {} were not in the page cache, which has them for the next "
      "run as long as memory lasts",
      format_bytes(std::max(kept, cold)));
}

std::string repeated_reads(const Files& files) {
  for (const File& file : files) {
    const bool again =
        file.direction == Direction::read && file.end > 0 && file.moved_bytes / 2 >= file.end;
    if (!again || file.space != SpaceKind::cuda || has_reason(file, Reason::pinned)) continue;
    return fmt::format(
        "pinning {}, which was read {} times over: with Straightway's own File::pin the GPU reads "
        "its pages in the page cache itself",
        file.path.empty() ? "the file" : file.path, file.moved_bytes / file.end);
  }
  return "";
}

std::string unaligned(const Files& files) {
  const auto bytes = sum(files, [](const File& f) { return bytes_by(f, Reason::unaligned); });
  if (bytes == 0) return "";
  return fmt::format("offsets and sizes that are multiples of 4096: {} were not",
                     format_bytes(bytes));
}

std::string unknown_residency(const Files& files) {
  const auto bytes = sum(files, [](const File& f) { return f.found.unknown_bytes; });
  if (bytes == 0) return "";
  return fmt::format(
      "reading as the files' owner: of {} it could not be told whether they are in "
      "the page cache, and cold ones were not read ahead",
      format_bytes(bytes));
}

std::string fallbacks(const Files& files) {
  const auto count = sum(files, [](const File& f) { return f.fallbacks; });
  if (count == 0) return "";
  return fmt::format(
      "without falling back: {} pieces were refused on the way that they were "
      "planned for, and went again on another",
      count);
}

}  // namespace

std::vector<std::string> run_advice(const RunAccount& account) {
  std::vector<std::string> advice;
  const auto add = [&](std::string sentence) {
    if (!sentence.empty()) advice.push_back(std::move(sentence));
  };
  add(why_nothing(account));
  for (const auto& look : {direct_path, next_time_hot, small_requests, repeated_reads, unaligned,
                           unknown_residency, fallbacks}) {
    add(look(account.summary.files));
  }
  return advice;
}

}  // namespace straightway::tools
