#include "memory/file_pins.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "os/signals_blocked.hpp"

namespace straightway::memory {
namespace {

// Pieces from which on threads are started for them.
constexpr std::size_t worth_helpers = 4;

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

std::uint64_t end_of(const FileRange& range) { return range.offset + range.size_bytes; }

// Whole pages that hold the ranges as far as the file goes, in order, joined where they meet.
std::vector<FileRange> whole_pages(const std::vector<FileRange>& ranges, std::uint64_t file_bytes) {
  const std::uint64_t mask = page_bytes() - 1;
  std::vector<FileRange> pages;
  for (const auto& range : ranges) {
    if (range.size_bytes == 0 || range.offset >= file_bytes) continue;
    const auto end = range.offset + std::min(range.size_bytes, file_bytes - range.offset);
    const auto begin = range.offset & ~mask;
    pages.push_back({begin, ((end + mask) & ~mask) - begin});
  }
  std::ranges::sort(pages, {}, &FileRange::offset);
  std::vector<FileRange> joined;
  for (const auto& range : pages) {
    if (joined.empty() || range.offset > end_of(joined.back())) {
      joined.push_back(range);
    } else {
      const auto end = std::max(end_of(joined.back()), end_of(range));
      joined.back().size_bytes = end - joined.back().offset;
    }
  }
  return joined;
}

Error pin_error(ErrorKind kind, int code, std::string why, std::string advice) {
  return Error{kind,
               code != 0 ? ErrorOrigin::system : ErrorOrigin::straightway,
               code,
               "pin",
               "",
               {},
               std::move(why),
               std::move(advice)};
}

// Starts up to `count` threads; fewer where there are no more to be had.
std::vector<std::jthread> start_threads(std::size_t count,
                                        const std::function<void(const std::stop_token&)>& work) {
  std::vector<std::jthread> threads;
  try {
    const os::SignalsBlocked blocked;
    threads.reserve(count);
    while (threads.size() < count) threads.emplace_back(work);
  } catch (const std::system_error&) {  // who would have been helped does it all
  } catch (const std::bad_alloc&) {
  }
  return threads;
}

}  // namespace

bool PinBudget::take(std::uint64_t size_bytes) {
  auto used = used_bytes_.load();
  do {
    if (used > limit_bytes_ || size_bytes > limit_bytes_ - used) return false;
  } while (!used_bytes_.compare_exchange_weak(used, used + size_bytes));
  return true;
}

// Fills entries in their order by helping threads, ahead of whoever registers them.
class FilePins::Filling {
 public:
  Filling(const Entries& entries, std::uint32_t helpers)
      : entries_(entries),
        filled_(entries.size()),
        threads_(start_threads(entries.size() < worth_helpers ? 0 : helpers,
                               [this](const std::stop_token& stop) { work(stop); })) {}
  ~Filling() {
    next_ = entries_.size();
    for (auto& thread : threads_) thread.request_stop();
  }

  // Returns when nobody fills this entry any more, nor will.
  void wait(std::size_t i) const {
    if (!threads_.empty()) filled_[i].wait(false);
  }

 private:
  void work(const std::stop_token& stop) {
    for (auto i = next_++; i < entries_.size(); i = next_++) {
      entries_[i]->range->fill(stop);
      filled_[i] = true;
      filled_[i].notify_all();
    }
  }

  const Entries& entries_;
  std::vector<std::atomic<bool>> filled_;
  std::atomic<std::size_t> next_{0};
  std::vector<std::jthread> threads_;  // last: joined first
};

Result<std::shared_ptr<FilePins>> FilePins::make(std::shared_ptr<Space> space,
                                                 std::shared_ptr<PinBudget> budget, int fd,
                                                 OnLost on_lost, Pieces pieces) {
  auto presence = os::PagePresence::open();
  if (!presence) return presence.error();
  return std::shared_ptr<FilePins>(new FilePins(std::move(space), std::move(budget), fd,
                                                std::move(*presence), std::move(on_lost), pieces));
}

FilePins::FilePins(std::shared_ptr<Space> space, std::shared_ptr<PinBudget> budget, int fd,
                   os::PagePresence presence, OnLost on_lost, Pieces pieces)
    : space_(std::move(space)),
      budget_(std::move(budget)),
      fd_(fd),
      presence_(std::move(presence)),
      on_lost_(std::move(on_lost)),
      pieces_(pieces) {}

Result<FilePins::Added> FilePins::add(const std::vector<FileRange>& ranges, std::int32_t device) {
  const std::lock_guard one_at_a_time(adding_);
  let_go(false);
  const auto stamp = os::read_settled_stamp(fd_);
  if (!stamp) return stamp.error();
  const auto wanted = whole_pages(ranges, stamp->size_bytes);
  Added added;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return pin_error(ErrorKind::closed, EBADF, "the file is closed", "open it again");
    added.pin = ++last_pin_;
  }
  for (const auto& range : wanted) {
    added.size_bytes += std::min(range.size_bytes, stamp->size_bytes - range.offset);
  }
  try {
    auto filled = fill(added.pin, wanted, device, *stamp);
    if (filled) return added;
    remove(added.pin, true);
    return filled.error();
  } catch (const std::bad_alloc&) {
    remove(added.pin, true);
    throw;
  }
}

void FilePins::lose_outdated(const os::FileStamp& stamp) {
  bool outdated = false;
  {
    const std::lock_guard lock(mutex_);
    outdated = std::ranges::any_of(entries_, [&](const auto& entry) {
      return !entry->leaving && entry->range->stamp() != stamp;
    });
  }
  if (outdated) lose("its size or change time changed");
  let_go(false);
  const std::lock_guard lock(mutex_);
  lost_ = false;  // from here on it is a new pin that may be lost
}

// The two witnesses are true of all that is pinned when this ends well.
Result<void> FilePins::fill(std::uint64_t pin, const std::vector<FileRange>& wanted,
                            std::int32_t device, const os::FileStamp& stamp) {
  lose_outdated(stamp);
  for (const auto& range : wanted) {
    for (const auto& gap : share(pin, range)) {
      if (auto added = add_range(pin, gap, device, stamp); !added) return added;
    }
  }
  for (const auto& range : wanted) {
    for (auto at = range.offset; at < end_of(range);) {
      const auto held = use(at);
      if (!held) {
        return pin_error(ErrorKind::unsupported, ESTALE, "it changed while it was being pinned",
                         "pin it when nobody writes it");
      }
      const auto end = std::min(end_of(range), end_of(held.range().range()));
      if (!held.intact({at, end - at})) continue;  // given up: the next look finds nothing
      at = end;
    }
  }
  return {};
}

// Makes what is pinned already the new pin's too, and tells what is missing.
std::vector<FileRange> FilePins::share(std::uint64_t pin, const FileRange& wanted) {
  const std::lock_guard lock(mutex_);
  std::vector<FileRange> gaps;
  auto at = wanted.offset;
  for (const auto& entry : entries_) {
    const auto& range = entry->range->range();
    if (entry->leaving || end_of(range) <= at || range.offset >= end_of(wanted)) continue;
    if (range.offset > at) gaps.push_back({at, range.offset - at});
    at = std::max(at, end_of(range));
    entry->pins.push_back(pin);
  }
  if (at < end_of(wanted)) gaps.push_back({at, end_of(wanted) - at});
  return gaps;
}

// The gap's pieces, mapped, which hold their share of the budget.
Result<FilePins::Entries> FilePins::cut(std::uint64_t pin, const FileRange& gap,
                                        const os::FileStamp& stamp) {
  Entry rest(budget_);  // what no piece has yet of the gap's share
  if (!budget_->take(gap.size_bytes)) {
    return pin_error(ErrorKind::out_of_memory, 0,
                     "pins hold " + std::to_string(budget_->used_bytes()) + " bytes, " +
                         std::to_string(gap.size_bytes) + " more are asked for, and pin_bytes is " +
                         std::to_string(budget_->limit_bytes()),
                     "pin less, end other pins, or raise pin_bytes (STRAIGHTWAY_PIN_BYTES)");
  }
  rest.taken_bytes = gap.size_bytes;
  Entries entries;
  for (auto at = gap.offset; at < end_of(gap); at += pieces_.size_bytes) {
    const FileRange piece{at, std::min(pieces_.size_bytes, end_of(gap) - at)};
    entries.push_back(std::make_unique<Entry>(budget_));
    auto& entry = *entries.back();
    rest.taken_bytes -= piece.size_bytes;
    entry.taken_bytes = piece.size_bytes;
    entry.pins.push_back(pin);
    auto mapped = PinnedRange::map(fd_, piece, stamp);
    if (!mapped) return mapped.error();
    entry.range = std::move(*mapped);
  }
  return entries;
}

Result<void> FilePins::add_range(std::uint64_t pin, const FileRange& gap, std::int32_t device,
                                 const os::FileStamp& stamp) {
  auto entries = cut(pin, gap, stamp);
  if (!entries) return entries.error();
  const bool may_have_writers = !os::has_no_writers(fd_);
  {
    const Filling filling(*entries, pieces_.helpers);
    for (std::size_t i = 0; i < entries->size(); ++i) {
      filling.wait(i);
      auto held = (*entries)[i]->range->hold(*space_, device, may_have_writers);
      if (!held) return held;
    }
  }
  for (auto& entry : *entries) insert(std::move(entry));
  return {};
}

void FilePins::insert(std::unique_ptr<Entry> entry) {
  const std::lock_guard lock(mutex_);
  const auto behind = std::ranges::find_if(entries_, [&](const auto& other) {
    return other->range->range().offset > entry->range->range().offset;
  });
  entries_.insert(behind, std::move(entry));
}

void FilePins::remove(std::uint64_t pin, bool may_wait) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& entry : entries_) {
      if (std::erase(entry->pins, pin) > 0 && entry->pins.empty()) entry->leaving = true;
    }
  }
  let_go(may_wait);
}

bool FilePins::has(std::uint64_t pin) {
  const std::lock_guard lock(mutex_);
  return !closed_ && std::ranges::any_of(entries_, [&](const auto& entry) {
    return !entry->leaving && std::ranges::find(entry->pins, pin) != entry->pins.end();
  });
}

void FilePins::close(bool may_wait) {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& entry : entries_) entry->leaving = true;
  }
  let_go(may_wait);
}

// Unregisters what is leaving, without the lock: it takes long. Allocates nothing, since
// destructors call it. Several threads are slower at it (measured).
void FilePins::let_go(bool may_wait) {
  if (may_wait) {
    std::unique_lock lock(mutex_);
    unused_.wait(lock, [&] {
      return std::ranges::none_of(
          entries_, [](const auto& entry) { return entry->leaving && entry->users > 0; });
    });
  }
  while (take_unused()) continue;
}

std::unique_ptr<FilePins::Entry> FilePins::take_unused() {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      entries_, [](const auto& entry) { return entry->leaving && entry->users == 0; });
  if (found == entries_.end()) return nullptr;
  auto entry = std::move(*found);
  entries_.erase(found);
  return entry;
}

std::vector<FileRange> FilePins::extents() {
  let_go(false);
  const std::lock_guard lock(mutex_);
  std::vector<FileRange> extents;
  for (const auto& entry : entries_) {
    if (entry->leaving) continue;
    FileRange range = entry->range->range();
    range.size_bytes = std::min(range.size_bytes, entry->range->stamp().size_bytes - range.offset);
    if (!extents.empty() && end_of(extents.back()) == range.offset) {
      extents.back().size_bytes += range.size_bytes;
    } else {
      extents.push_back(range);
    }
  }
  return extents;
}

bool FilePins::lost() {
  const std::lock_guard lock(mutex_);
  return lost_;
}

// Entries are in order, none longer than a piece; only those that leave may overlap others.
FilePins::Use FilePins::use(std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  auto at = std::ranges::partition_point(entries_, [&](const auto& entry) {
    return entry->range->range().offset + pieces_.size_bytes <= offset;
  });
  for (; at != entries_.end(); ++at) {
    auto& entry = **at;
    const auto& range = entry.range->range();
    if (range.offset > offset) break;
    if (entry.leaving || offset >= end_of(range)) continue;
    ++entry.users;
    return {shared_from_this(), &entry};
  }
  return {};
}

void FilePins::end_use(Entry& entry) {
  const std::lock_guard lock(mutex_);
  if (--entry.users == 0) unused_.notify_all();
}

bool FilePins::intact(const PinnedRange& range, const FileRange& part) {
  const auto now = os::read_stamp(fd_);
  if (!now || *now != range.stamp()) {
    lose("its size or change time changed");
    return false;
  }
  if (range.all_present(presence_, part)) return true;
  lose("pages of it were replaced, or taken by the kernel");
  return false;
}

void FilePins::lose(const char* why) {
  {
    const std::lock_guard lock(mutex_);
    bool any = false;
    for (const auto& entry : entries_) any = !std::exchange(entry->leaving, true) || any;
    if (!any) return;
    lost_ = true;
  }
  if (!on_lost_) return;
  try {
    on_lost_(why);
  } catch (const std::bad_alloc&) {  // a transport's reap may not throw; the receipt tells, too
  }
}

FilePins::Use::~Use() {
  if (pins_) pins_->end_use(*entry_);
}

FilePins::Use& FilePins::Use::operator=(Use&& other) noexcept {
  std::swap(pins_, other.pins_);
  std::swap(entry_, other.entry_);
  return *this;
}

const PinnedRange& FilePins::Use::range() const { return *entry_->range; }

bool FilePins::Use::intact(const FileRange& part) const {
  return pins_->intact(*entry_->range, part);
}

bool FilePins::Use::ready(const FileRange& part) const {
  if (!entry_->range->held()) {
    pins_->lose("the driver no longer holds its pages (a device was reset)");
    return false;
  }
  return intact(part);
}

}  // namespace straightway::memory
