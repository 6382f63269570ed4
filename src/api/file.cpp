#include "straightway/file.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "api/call.hpp"
#include "api/job.hpp"
#include "api/open_file.hpp"
#include "api/peer_call.hpp"
#include "api/placed_ranges.hpp"

namespace straightway {
namespace {

// Files of read_many that are open at the same time: well below the usual limit of 1024.
constexpr std::size_t files_open_at_once = 128;

Result<std::shared_ptr<Engine>> engine_of(const std::shared_ptr<Context>& context) {
  if (context) return context->engine();
  auto standard = Context::process_default();
  if (!standard) return standard.error();
  return (*standard)->engine();
}

// The ranges of one file, which live until the call has planned them.
Result<CallRanges> begin_ranges(const std::shared_ptr<OpenFile>& file, Direction direction,
                                const std::vector<RangeRequest>& ranges) {
  FileUse use(file);
  if (!use) return closed_error(direction, file ? file->facts->path : "");
  CallRanges made{.range = {std::move(use), 0, 0, {}}};
  if (ranges.empty()) return made;  // one range of nothing
  made.count = ranges.size();
  for (const auto& range : ranges) {
    made.largest_bytes = std::max(made.largest_bytes, range.size_bytes);
  }
  made.next = [&ranges](std::size_t i, CallRange& range) {
    range.offset = ranges[i].offset;
    range.size_bytes = ranges[i].size_bytes;
    range.memory = ranges[i].memory;
  };
  return made;
}

Memory part_of(const Memory& memory, std::uint64_t position, std::uint64_t size_bytes) {
  return {static_cast<std::byte*>(memory.address) + position, size_bytes, memory.device};
}

// The same of one memory; checked.
Result<CallRanges> begin_placed(const std::shared_ptr<OpenFile>& file, Direction direction,
                                const Memory& memory, std::span<const PlacedRange> ranges) {
  FileUse use(file);
  if (!use) return closed_error(direction, file ? file->facts->path : "");
  if (auto checked = check_placed(direction, use->facts->path, memory, ranges); !checked) {
    return checked.error();
  }
  CallRanges made{.range = {std::move(use), 0, 0, {}}};
  std::uint64_t begin = memory.size_bytes;
  std::uint64_t end = 0;
  for (const auto& range : ranges) {
    if (range.size_bytes == 0) continue;
    begin = std::min(begin, range.position);
    end = std::max(end, range.position + range.size_bytes);
    made.largest_bytes = std::max(made.largest_bytes, range.size_bytes);
  }
  if (ranges.empty()) return made;  // one range of nothing
  made.count = ranges.size();
  if (begin < end) made.all = part_of(memory, begin, end - begin);
  made.next = [memory, ranges](std::size_t i, CallRange& range) {
    range.offset = ranges[i].offset;
    range.size_bytes = ranges[i].size_bytes;
    range.memory = part_of(memory, ranges[i].position, ranges[i].size_bytes);
  };
  return made;
}

Result<Receipt> run_one(const std::shared_ptr<OpenFile>& file, Direction direction,
                        const Memory& memory, const CallOptions& options) {
  FileUse use(file);
  if (!use) return closed_error(direction, file ? file->facts->path : "");
  return run_one(direction, range_of(std::move(use), memory, options), options);
}

Result<Job> submit_one(const std::shared_ptr<OpenFile>& file, Direction direction,
                       const Memory& memory, const CallOptions& options,
                       std::shared_ptr<void> owner) {
  FileUse use(file);
  if (!use) return closed_error(direction, file ? file->facts->path : "");
  return submit_call(direction, only(range_of(std::move(use), memory, options)), options,
                     std::move(owner));
}

// Adds what one batch of files moved to the receipt of all.
void add_receipt(Receipt& sum, RangeTable& table, const Receipt& part) {
  sum.wanted_bytes += part.wanted_bytes;
  sum.moved_bytes += part.moved_bytes;
  if (part.ended_early && !sum.ended_early) sum.end_of_file = part.end_of_file;
  sum.ended_early |= part.ended_early;
  for (const auto route : all_routes) {
    auto& into = sum.routes[index(route)];
    const auto& from = part.routes[index(route)];
    into.bytes += from.bytes;
    into.segments += from.segments;
    if (into.reason == Reason::none) into.reason = from.reason;
    if (into.evidence.kind == EvidenceKind::none || from.evidence.kind == EvidenceKind::claimed) {
      if (from.bytes > 0) into.evidence = from.evidence;
    }
  }
  sum.retries += part.retries;
  sum.fallbacks += part.fallbacks;
  if (sum.fallback_code == 0) sum.fallback_code = part.fallback_code;
  sum.found.hot_bytes += part.found.hot_bytes;
  sum.found.cold_bytes += part.found.cold_bytes;
  sum.found.unknown_bytes += part.found.unknown_bytes;
  if (sum.cold_reason == Reason::none) sum.cold_reason = part.cold_reason;
  sum.disk_measured &= part.disk_measured;
  sum.disk_bytes = sum.disk_measured ? sum.disk_bytes + part.disk_bytes : 0;
  sum.threads = std::max(sum.threads, part.threads);
  sum.pinned_bytes = std::max(sum.pinned_bytes, part.pinned_bytes);
  sum.pin_bytes = std::max(sum.pin_bytes, part.pin_bytes);
  sum.times.done_ns = part.times.done_ns;
  if (part.ranges) {
    const auto append = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(table.offset, part.ranges->offset);
    append(table.wanted_bytes, part.ranges->wanted_bytes);
    append(table.moved_bytes, part.ranges->moved_bytes);
  } else {
    table.offset.push_back(part.file_offset);
    table.wanted_bytes.push_back(part.wanted_bytes);
    table.moved_bytes.push_back(part.moved_bytes);
  }
}

// Files of read_many that are read together.
struct Batch {
  std::vector<std::shared_ptr<OpenFile>> files;  // close with the batch, on the caller's thread
  std::vector<CallRange> ranges;

  // Takes them; the batch stays while the call plans.
  CallRanges call() {
    CallRanges made{.range = std::move(ranges.front()), .count = ranges.size()};
    made.largest_bytes = made.range.size_bytes;
    for (const auto& range : ranges) {
      made.largest_bytes = std::max(made.largest_bytes, range.size_bytes);
    }
    made.next = [this](std::size_t i, CallRange& range) {
      if (i > 0) range = std::move(ranges[i]);
    };
    return made;
  }
};

// Opens requests [first, last), or as many as the limit of open files allows (at least one).
Result<Batch> open_batch(const std::vector<FileRequest>& requests, std::size_t first,
                         std::size_t last, const std::shared_ptr<Engine>& engine) {
  Batch batch;
  for (auto i = first; i < last; ++i) {
    const auto& request = requests[i];
    auto file = OpenFile::open(request.path, "r", {}, engine);
    if (!file && file.error().kind == ErrorKind::too_many_files && i > first) break;
    if (!file) return file.error();
    batch.ranges.push_back({FileUse(*file), request.offset,
                            request.size_bytes.value_or(request.memory.size_bytes),
                            request.memory});
    batch.files.push_back(std::move(*file));
  }
  return batch;
}

Error stopped_error(const std::string& path) {
  return {ErrorKind::cancelled,
          ErrorOrigin::straightway,
          ECANCELED,
          "read many files",
          path,
          {},
          "the caller stopped before this one",
          ""};
}

}  // namespace

File::File(std::shared_ptr<OpenFile> open) : open_(std::move(open)) {}
File::File(File&&) noexcept = default;

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    if (open_) open_->close();
    open_ = std::move(other.open_);
  }
  return *this;
}

File::~File() {
  if (open_) open_->close();
}

Result<File> File::open(std::string_view path, std::string_view mode, OpenOptions options,
                        const std::shared_ptr<Context>& context) {
  auto engine = engine_of(context);
  if (!engine) return engine.error();
  auto opened = OpenFile::open(std::string(path), mode, options, std::move(*engine));
  if (!opened) return opened.error();
  return File(std::move(*opened));
}

Result<File> File::from_descriptor(int fd, OpenOptions options,
                                   const std::shared_ptr<Context>& context) {
  auto engine = engine_of(context);
  if (!engine) return engine.error();
  auto opened = OpenFile::adopt(fd, options, std::move(*engine));
  if (!opened) return opened.error();
  return File(std::move(*opened));
}

Result<void> File::close() {
  if (open_) open_->close();
  return {};
}

bool File::closed() const { return !open_ || open_->closed(); }

Result<std::uint64_t> File::size() const {
  if (const FileUse use(open_); use) return use->size();
  auto error = closed_error(Direction::read, path());
  error.attempted = "ask for the size";
  return error;
}

const std::string& File::path() const {
  static const std::string none;
  return open_ ? open_->facts->path : none;
}

const FileFacts* File::facts() const { return closed() ? nullptr : open_->facts.get(); }
int File::descriptor() const {
  const FileUse use(open_);
  return use ? use->ref(false).fd : -1;
}

Result<Receipt> File::read_into(Memory memory, const CallOptions& options) const {
  return run_one(open_, Direction::read, memory, options);
}

Result<Receipt> File::write_from(Memory memory, const CallOptions& options) const {
  return run_one(open_, Direction::write, memory, options);
}

std::optional<Result<Receipt>> File::move_at_once(Direction direction, Memory memory,
                                                  const CallOptions& options) const {
  FileUse use(open_);
  if (!use) return Result<Receipt>(closed_error(direction, path()));
  return run_small(direction, range_of(std::move(use), memory, options), options, StreamWait::no);
}

Result<Job> File::submit_read(Memory memory, const CallOptions& options,
                              std::shared_ptr<void> owner) const {
  return submit_one(open_, Direction::read, memory, options, std::move(owner));
}

Result<Job> File::submit_write(Memory memory, const CallOptions& options,
                               std::shared_ptr<void> owner) const {
  return submit_one(open_, Direction::write, memory, options, std::move(owner));
}

Result<Receipt> File::read_ranges(const std::vector<RangeRequest>& ranges,
                                  const CallOptions& options) const {
  auto begun = begin_ranges(open_, Direction::read, ranges);
  if (!begun) return begun.error();
  return run_call(Direction::read, std::move(*begun), options);
}

Result<Receipt> File::write_ranges(const std::vector<RangeRequest>& ranges,
                                   const CallOptions& options) const {
  auto begun = begin_ranges(open_, Direction::write, ranges);
  if (!begun) return begun.error();
  return run_call(Direction::write, std::move(*begun), options);
}

Result<Job> File::submit_ranges(Direction direction, const std::vector<RangeRequest>& ranges,
                                const CallOptions& options, std::shared_ptr<void> owner) const {
  auto begun = begin_ranges(open_, direction, ranges);
  if (!begun) return begun.error();
  return submit_call(direction, std::move(*begun), options, std::move(owner));
}

Result<Receipt> File::read_ranges(Memory into, std::span<const PlacedRange> ranges,
                                  const CallOptions& options) const {
  auto begun = begin_placed(open_, Direction::read, into, ranges);
  if (!begun) return begun.error();
  return run_call(Direction::read, std::move(*begun), options);
}

Result<Receipt> File::write_ranges(Memory from, std::span<const PlacedRange> ranges,
                                   const CallOptions& options) const {
  auto begun = begin_placed(open_, Direction::write, from, ranges);
  if (!begun) return begun.error();
  return run_call(Direction::write, std::move(*begun), options);
}

Result<Job> File::submit_ranges(Direction direction, Memory memory,
                                std::span<const PlacedRange> ranges, const CallOptions& options,
                                std::shared_ptr<void> owner) const {
  auto begun = begin_placed(open_, direction, memory, ranges);
  if (!begun) return begun.error();
  return submit_call(direction, std::move(*begun), options, std::move(owner));
}

Result<Plan> File::explain(Direction direction, Memory memory, const CallOptions& options) const {
  FileUse use(open_);
  if (!use) return closed_error(direction, path());
  const auto settings = call_settings(use->settings, options);
  auto range = range_of(std::move(use), memory, options);
  if (auto found = find_peer(range); !found) return found.error();
  return explain_call(direction, range, settings);
}

Result<Plan> File::explain(Direction direction, SpaceKind space, std::int32_t device,
                           std::uint64_t size_bytes, const CallOptions& options) const {
  FileUse use(open_);
  if (!use) return closed_error(direction, path());
  const auto settings = call_settings(use->settings, options);
  // As aligned as memory of its own allocation is.
  const MemoryRange memory{space, space == SpaceKind::host ? -1 : device, 0, size_bytes};
  const CallRange range{
      std::move(use), options.offset, options.size_bytes.value_or(size_bytes), {}};
  return explain_call(direction, range, settings, &memory);
}

Result<Plan> File::explain_peer(Direction direction, std::string_view pci_device,
                                std::uint64_t size_bytes, const CallOptions& options) const {
  FileUse use(open_);
  if (!use) return closed_error(direction, path());
  const auto settings = call_settings(use->settings, options);
  const MemoryRange memory{SpaceKind::peer, -1, 0, size_bytes};
  CallRange range{std::move(use), options.offset, options.size_bytes.value_or(size_bytes), {}};
  range.peer = std::make_shared<const memory::PeerMapping>(std::string(pci_device), 0, size_bytes);
  return explain_call(direction, range, settings, &memory);
}

Result<Receipt> read_many(const std::vector<FileRequest>& requests, const CallOptions& options,
                          const std::shared_ptr<Context>& context,
                          const std::function<bool()>& go_on) {
  auto engine = engine_of(context);
  if (!engine) return engine.error();
  if (requests.size() > 1) {  // its own descriptors come before those of the files
    if (auto ready = (*engine)->warmup(-1); !ready) return ready.error();
  }
  CallOptions left = options;  // the deadline is that of the whole call
  const auto begun = std::chrono::steady_clock::now();
  Receipt sum;
  RangeTable table;
  for (std::size_t next = 0; next < requests.size();) {
    if (go_on && !go_on()) return stopped_error(requests[next].path);
    const auto last = std::min(requests.size(), next + files_open_at_once);
    auto batch = open_batch(requests, next, last, *engine);
    if (!batch) return batch.error();
    const auto count = batch->files.size();
    if (options.deadline) {  // at least a moment: the transfer then says that the time is over
      const auto spent = std::chrono::steady_clock::now() - begun;
      left.deadline = std::max(*options.deadline - spent, std::chrono::nanoseconds(1));
    }
    auto receipt = run_call(Direction::read, batch->call(), left);
    if (!receipt) return receipt.error();
    if (next == 0) {
      sum = *receipt;
      sum.wanted_bytes = sum.moved_bytes = 0;
      sum.routes = {};
      sum.found = {};
      sum.retries = sum.fallbacks = 0;
      sum.disk_bytes = 0;
      sum.ended_early = false;
    }
    add_receipt(sum, table, *receipt);
    next += count;
  }
  if (requests.size() > 1) sum.ranges = std::make_shared<const RangeTable>(std::move(table));
  return sum;
}

const char* version() { return "0.1.0"; }

}  // namespace straightway
