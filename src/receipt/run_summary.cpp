#include "receipt/run_summary.hpp"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "os/facts.hpp"
#include "os/sealable_memory.hpp"
#include "receipt/tally_layout.hpp"

namespace straightway::receipt {
namespace {

using File = RunSummary::File;

Error failed(const char* attempted, int code) {
  return Error{
      os::errno_kind(code), ErrorOrigin::system, code, attempted, "", {}, os::errno_text(code), ""};
}

void add(std::uint64_t& sum, std::uint64_t value) {
  if (__builtin_add_overflow(sum, value, &sum)) sum = std::numeric_limits<std::uint64_t>::max();
}

// Fit for a terminal. Bytes above 0x7F stay: they are the names of files in other languages.
std::string text_of(std::span<const char> from) {
  std::string text;
  for (const char c : from) {
    if (c == '\0') break;
    const auto byte = static_cast<unsigned char>(c);
    text += byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  return text;
}

std::string sentence_of(const TallyText& text, Reason reason) {
  return text.written == 1 ? text_of(text.text) : to_string(reason);
}

std::optional<Reason> reason_of(std::uint64_t code) {
  if (code >= reason_count) return std::nullopt;
  return static_cast<Reason>(code);
}

std::optional<RunSummary::Way> way_of(const TallyWay& from) {
  const std::uint64_t route = from.tag >> 8;
  const auto reason = reason_of(from.tag & 0xFF);
  if (route == 0 || route > route_count || !reason) return std::nullopt;
  return RunSummary::Way{all_routes[route - 1], *reason, from.bytes, from.segments,
                         sentence_of(from.sentence, *reason)};
}

bool fill_what(File& file, std::uint64_t what) {
  const std::uint64_t direction = what & 0xFF;
  const std::uint64_t door = (what >> 8) & 0xFF;
  const std::uint64_t space = (what >> 16) & 0xFFFF;
  if (direction > 1 || door > static_cast<std::uint64_t>(Door::cufile) ||
      space > static_cast<std::uint64_t>(SpaceKind::peer)) {
    return false;
  }
  file.direction = static_cast<Direction>(direction);
  file.door = static_cast<Door>(door);
  file.space = static_cast<SpaceKind>(space);
  file.device = static_cast<std::int32_t>(what >> 32);
  return true;
}

void fill_counts(File& file, const TallyFile& from) {
  file.requests = from.requests;
  file.wanted_bytes = from.wanted_bytes;
  file.time_ns = from.time_ns;
  file.retries = from.retries;
  file.fallbacks = from.fallbacks;
  file.short_reads = from.short_reads;
  file.disk_bytes = from.disk_bytes;
  file.disk_unmeasured = from.disk_unmeasured;
  file.found = {from.hot_bytes, from.cold_bytes, from.unknown_bytes};
  file.end = from.end;
  file.layer = {from.layer_n, from.layer_nvfs, from.layer_p2pdma, from.layer_posix};
}

void fill_ways(File& file, const TallyFile& from) {
  for (const TallyWay& way : from.ways) {
    if (auto found = way_of(way)) file.ways.push_back(std::move(*found));
  }
  std::ranges::stable_sort(file.ways, std::greater{}, &RunSummary::Way::bytes);
  for (const RunSummary::Way& way : file.ways) add(file.moved_bytes, way.bytes);
  for (const Route route : all_routes) {
    const TallyRefusal& refusal = from.refusals[index(route)];
    const auto reason = reason_of(refusal.reason);
    const bool used = std::ranges::any_of(
        file.ways, [&](const RunSummary::Way& way) { return way.route == route; });
    if (!reason || *reason == Reason::none || used) continue;
    file.refusals.push_back({route, *reason, sentence_of(refusal.sentence, *reason)});
  }
}

std::optional<File> file_of(const TallyFile& from, bool is_rest) {
  File file;
  file.is_rest = is_rest;
  if (from.requests == 0 || !fill_what(file, from.what)) return std::nullopt;
  if (from.written == 1) file.path = text_of(from.path);
  fill_counts(file, from);
  fill_ways(file, from);
  return file;
}

class Reader {
 public:
  explicit Reader(int fd) : fd_(fd) {}
  // By pread: nothing that a program does to the memory can kill the reader.
  bool read(void* to, std::size_t size, std::size_t offset) const {
    ssize_t got = -1;
    do {
      got = ::pread(fd_, to, size, static_cast<off_t>(offset));
    } while (got < 0 && errno == EINTR);
    return got == static_cast<ssize_t>(size);
  }

 private:
  int fd_;
};

void add_processes(RunSummary& summary, std::uint64_t contexts,
                   std::span<const TallyProcess> processes) {
  const auto count = std::min<std::uint64_t>(contexts, processes.size());
  for (const TallyProcess& process : processes.first(count)) {
    const bool known = std::ranges::any_of(
        summary.processes, [&](const auto& other) { return other.pid == process.pid; });
    if (process.pid <= 0 || known) continue;
    summary.processes.push_back({process.pid, text_of(process.program)});
  }
}

}  // namespace

Result<RunMemory> RunMemory::create() {
  constexpr const char* attempted = "make memory for the receipts of a program";
  os::Descriptor fd = os::create_sealable_memory(tally_name);
  if (!fd || ::ftruncate(fd.get(), sizeof(TallyLayout)) != 0) return failed(attempted, errno);
  const std::uint64_t head[] = {tally_magic, tally_version, sizeof(TallyLayout)};
  if (::pwrite(fd.get(), head, sizeof(head), 0) != static_cast<ssize_t>(sizeof(head)) ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return failed(attempted, errno);
  }
  return RunMemory(std::move(fd));
}

std::string RunMemory::place() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd_.get());
}

Result<RunSummary> RunMemory::read() const {
  const Reader reader(fd_.get());
  RunSummary summary;
  auto file = std::make_unique<TallyFile>();
  struct Head {
    std::array<std::uint64_t, 8> words;
    std::array<TallyProcess, tally_process_limit> processes;
  };
  static_assert(offsetof(TallyLayout, processes) == offsetof(Head, processes));
  const auto head = std::make_unique<Head>();
  if (!reader.read(head.get(), sizeof(Head), 0)) return failed("read the receipts", EIO);
  add_processes(summary, head->words[offsetof(TallyLayout, contexts) / 8], head->processes);
  summary.read_errors = head->words[offsetof(TallyLayout, errors) / 8];
  summary.write_errors = head->words[offsetof(TallyLayout, errors) / 8 + 1];
  for (std::size_t i = 0; i <= tally_file_limit; ++i) {  // the last: the others
    const std::size_t offset = offsetof(TallyLayout, files) + i * sizeof(TallyFile);
    // Most places are free, and a look at their first word is enough.
    if (!reader.read(file.get(), sizeof(file->key), offset)) break;
    if (file->key == 0 && i < tally_file_limit) continue;
    if (!reader.read(file.get(), sizeof(TallyFile), offset)) break;
    if (auto found = file_of(*file, i == tally_file_limit)) {
      summary.files.push_back(std::move(*found));
    }
  }
  std::ranges::stable_sort(summary.files, std::greater{}, &File::moved_bytes);
  return summary;
}

}  // namespace straightway::receipt
