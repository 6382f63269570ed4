#include "receipt/tally.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <span>
#include <string_view>

#include "os/descriptor.hpp"
#include "plan/planner.hpp"
#include "receipt/duration.hpp"
#include "receipt/tally_layout.hpp"

namespace straightway::receipt {
namespace {

using Word = std::atomic_ref<std::uint64_t>;
constexpr auto relaxed = std::memory_order_relaxed;

void grow(std::uint64_t& counter, std::uint64_t by) {
  if (by != 0) Word(counter).fetch_add(by, relaxed);
}

void raise_to(std::uint64_t& place, std::uint64_t value) {
  Word word(place);
  std::uint64_t seen = word.load(relaxed);
  while (seen < value && !word.compare_exchange_weak(seen, value, relaxed)) {
  }
}

// Whether the place is this key's now. Nobody waits for the one who came first: it may be killed.
enum class Claim : std::uint8_t { first, found, taken };
Claim claim(std::uint64_t& place, std::uint64_t key) {
  std::uint64_t seen = 0;
  if (Word(place).compare_exchange_strong(seen, key, relaxed)) return Claim::first;
  return seen == key ? Claim::found : Claim::taken;
}

// The end of a path that is too long says more than its beginning.
void write_text(std::span<char> to, std::string_view text, std::uint64_t& written) {
  const std::size_t room = to.size() - 1;
  if (text.size() > room) text.remove_prefix(text.size() - room);
  text.copy(to.data(), text.size());
  Word(written).store(1, std::memory_order_release);
}

// FNV-1a, so that every process of a program finds the same place for a file.
std::uint64_t hash_of(std::string_view path, std::uint64_t what) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325 ^ what;
  for (const char c : path) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x0000'0100'0000'01b3;
  }
  hash ^= hash >> 29;
  return hash == 0 ? 1 : hash;
}

std::uint64_t what_of(const Receipt& receipt) {
  return static_cast<std::uint64_t>(receipt.direction) |
         static_cast<std::uint64_t>(receipt.door) << 8 |
         static_cast<std::uint64_t>(receipt.memory.space) << 16 |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(receipt.memory.device)) << 32;
}

// Words are made only where they are new: a sentence costs more than a count.
void say(TallyText& to, const Receipt& receipt, Route route, Reason reason) {
  try {
    write_text(to.text,
               plan::sentence(reason, route, receipt.file.get(), receipt.machine.get(),
                              receipt.settings.get(), receipt.peer.get()),
               to.written);
  } catch (const std::bad_alloc&) {  // the code is there, only its sentence is not
  }
}

void add_way(TallyFile& file, const Receipt& receipt, Route route) {
  const RouteShare& share = receipt.routes[index(route)];
  if (share.bytes == 0 && share.segments == 0) return;
  const std::uint64_t tag = way_tag(route, share.reason);
  for (TallyWay& way : file.ways) {
    const bool last = &way == &file.ways.back();
    const Claim claimed = claim(way.tag, tag);
    if (claimed == Claim::taken && !last) continue;
    grow(way.bytes, share.bytes);
    grow(way.segments, share.segments);
    if (claimed == Claim::first) say(way.sentence, receipt, route, share.reason);
    return;
  }
}

void add_refusal(TallyFile& file, const Receipt& receipt, Route route) {
  const Reason reason = receipt.refused[index(route)];
  TallyRefusal& refusal = file.refusals[index(route)];
  if (reason == Reason::none || Word(refusal.reason).load(relaxed) != 0) return;
  if (claim(refusal.reason, static_cast<std::uint64_t>(reason)) == Claim::first) {
    say(refusal.sentence, receipt, route, reason);
  }
}

void add_counts(TallyFile& file, const Receipt& receipt) {
  grow(file.requests, 1);
  grow(file.wanted_bytes, receipt.wanted_bytes);
  grow(file.time_ns, duration_ns(receipt.times));
  grow(file.retries, receipt.retries);
  grow(file.fallbacks, receipt.fallbacks);
  grow(file.short_reads, receipt.ended_early ? 1 : 0);
  grow(file.disk_bytes, receipt.disk_bytes);
  grow(file.disk_unmeasured, receipt.disk_measured ? 0 : 1);
  grow(file.hot_bytes, receipt.found.hot_bytes);
  grow(file.cold_bytes, receipt.found.cold_bytes);
  grow(file.unknown_bytes, receipt.found.unknown_bytes);
  raise_to(file.end, receipt.file_offset + receipt.wanted_bytes);
  grow(file.layer_n, receipt.layer.n);
  grow(file.layer_nvfs, receipt.layer.nvfs);
  grow(file.layer_p2pdma, receipt.layer.p2pdma);
  grow(file.layer_posix, receipt.layer.posix);
}

// Sealed at its size by whoever made it, so that it cannot shrink under us.
bool is_tally(int fd) {
  constexpr int wanted = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = ::fcntl(fd, F_GET_SEALS);
  struct stat status{};
  return seals >= 0 && (seals & wanted) == wanted && ::fstat(fd, &status) == 0 &&
         status.st_size == static_cast<off_t>(sizeof(TallyLayout));
}

void claim_process(TallyLayout& layout) {
  const std::uint64_t i = Word(layout.contexts).fetch_add(1, relaxed);
  if (i >= layout.processes.size()) return;
  TallyProcess& process = layout.processes[i];
  const std::string_view program = ::program_invocation_short_name;
  program.copy(process.program.data(), process.program.size() - 1);
  std::atomic_ref(process.pid).store(::getpid(), std::memory_order_release);
}

}  // namespace

std::unique_ptr<Tally> Tally::open(const std::string& place) {
  const os::Descriptor fd(::open(place.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd || !is_tally(fd.get())) return nullptr;
  void* at = ::mmap(nullptr, sizeof(TallyLayout), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return nullptr;
  auto* layout = static_cast<TallyLayout*>(at);
  if (layout->magic != tally_magic || layout->version != tally_version) {
    ::munmap(at, sizeof(TallyLayout));
    return nullptr;
  }
  claim_process(*layout);
  return std::unique_ptr<Tally>(new Tally(layout));
}

Tally::~Tally() { ::munmap(layout_, sizeof(TallyLayout)); }

TallyFile& Tally::file_of(const Receipt& receipt) noexcept {
  const std::uint64_t what = what_of(receipt);
  const std::string_view path = receipt.file ? std::string_view(receipt.file->path) : "";
  const std::uint64_t key = hash_of(path, what);
  for (std::size_t i = 0; i < tally_probes; ++i) {
    TallyFile& file = layout_->files[(key + i) % tally_file_limit];
    const Claim claimed = claim(file.key, key);
    if (claimed == Claim::taken) continue;
    if (claimed == Claim::first) {
      Word(file.what).store(what, relaxed);
      write_text(file.path, path, file.written);
    }
    return file;
  }
  return layout_->others;
}

void Tally::add(const Receipt& receipt) noexcept {
  TallyFile& file = file_of(receipt);
  add_counts(file, receipt);
  for (const Route route : all_routes) {
    add_way(file, receipt, route);
    add_refusal(file, receipt, route);
  }
}

void Tally::add_error(Direction direction) noexcept {
  grow(layout_->errors[static_cast<std::size_t>(direction)], 1);
}

}  // namespace straightway::receipt
