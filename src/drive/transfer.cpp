#include "drive/transfer.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "drive/account.hpp"
#include "drive/verdict.hpp"
#include "os/facts.hpp"

namespace straightway::drive {
namespace {

constexpr std::uint64_t no_end = UINT64_MAX;
// Segments handed over at once. With 64 the pump slept for the transport's lock more often than it
// worked: 100,000 ranges of 16 KiB reached a GPU at 6 to 8 GB/s, with 512 at 20 (one H200).
constexpr std::size_t first_batch = 4;
constexpr std::size_t largest_batch = 512;

std::uint64_t end_of(const FileRange& range) { return range.offset + range.size_bytes; }

}  // namespace

Transfer::Transfer(TransferSpec spec, const Routes& routes, std::uint32_t id)
    : spec_(std::move(spec)),
      routes_(routes),
      id_(id),
      attachments_(spec_.files.size()),
      ends_(spec_.legs.size(), no_end),
      leg_bytes_(spec_.legs.size(), 0),
      windows_(spec_.cache_steps) {
  for (const auto& leg : spec_.legs) wanted_bytes_ += leg.range.size_bytes;
  skip_finished_legs();
}

// Leaves the cursor on a segment that exists, or past the last leg.
void Transfer::skip_finished_legs() {
  while (leg_ < spec_.legs.size()) {
    const auto& leg = spec_.legs[leg_];
    if (run_ >= leg.run_count) {
      ++leg_;
      run_ = 0;
      segment_ = 0;
    } else if (segment_ >= segment_count(leg.runs[run_])) {
      ++run_;
      segment_ = 0;
    } else {
      return;
    }
  }
}

// Looks at the next piece without taking it. False when there is none.
bool Transfer::take_piece(Piece& piece) {
  if (!again_.empty()) {
    piece = take_again();
    return true;
  }
  if (ready_.empty()) {
    if (leg_ >= spec_.legs.size()) return false;
    ready_.push_back(new_piece());
    ++segment_;
    skip_finished_legs();
  }
  piece = ready_.front();
  ready_.pop_front();
  const bool to_device = piece.route == Route::p2pdma || piece.route == Route::nvfs;
  if (to_device && gave_up_[index(piece.route)]) leave_direct(piece);  // once is enough
  if (no_dontcache_ && piece.dontcache) forgo_dontcache(piece);  // refused since it was decided
  return true;
}

// A piece that goes another way than it was planned for may be larger than what its transport
// takes: then up to where segments of that size end.
Transfer::Piece Transfer::take_again() {
  Piece piece = again_.back();
  const auto* transport = routes_.of(piece.route, piece.direct_io);
  const auto largest = transport == nullptr ? 0 : transport->capabilities().largest_segment_bytes;
  if (largest == 0 || piece.payload.size_bytes <= largest) {
    again_.pop_back();
    return piece;
  }
  auto& left = again_.back().payload;
  piece.payload.size_bytes = largest - left.offset % largest;
  left.offset += piece.payload.size_bytes;
  left.size_bytes -= piece.payload.size_bytes;
  return piece;
}

Transfer::Piece Transfer::new_piece() {
  const auto& run = spec_.legs[leg_].runs[run_];
  Piece piece;
  piece.leg = leg_;
  piece.route = run.route;
  piece.reason = run.reason;
  piece.direct_io = run.direct_io;
  piece.align_bytes = run.align_bytes;
  piece.payload = segment(run, segment_).payload;
  if (run.cold != ColdWay::same && spec_.look_up) resolve(piece, run);
  return piece;
}

// By what the page cache has of it now.
void Transfer::resolve(Piece& piece, const Run& run) {
  if (const std::pair key{leg_, run_}; windows_of_ != key) {
    windows_of_ = key;
    windows_.begin(run, spec_.files[spec_.legs[leg_].file].ref.fd, spec_.look_up);
  }
  const auto found = windows_.at(piece.payload.offset);
  const auto way = plan::resolve(run, piece.payload, found, spec_.vendor_route);
  piece.route = way.route;
  piece.reason = way.reason;
  piece.direct_io = way.direct_io;
  piece.align_bytes = way.align_bytes;
  piece.dontcache = way.dontcache;
  piece.trim = way.trim;
  piece.fills_cache = plan::fills_cache(way, found);
  if (way.trim) remember_trimmed(piece);
}

void Transfer::remember_trimmed(const Piece& piece) {
  const auto file = spec_.legs[piece.leg].file;
  if (!trimmed_.empty() && trimmed_.back().file == file &&
      end_of(trimmed_.back().range) == piece.payload.offset) {
    trimmed_.back().range.size_bytes += piece.payload.size_bytes;
  } else {
    trimmed_.push_back({file, piece.payload});
  }
}

void Transfer::drop_trimmed() {
  if (spec_.drop_pages) {
    for (const auto& [file, range] : trimmed_) spec_.drop_pages(spec_.files[file].ref.fd, range);
  }
  trimmed_.clear();
}

const transport::Attachment* Transfer::attach(transport::Transport& transport, std::uint32_t file) {
  for (const auto& [attached, attachment] : attachments_[file]) {
    if (attached == &transport) return &attachment;
  }
  auto attachment = transport.attach(spec_.files[file].ref);
  if (!attachment) {
    stop(attachment.error());
    return nullptr;
  }
  attachments_[file].emplace_back(&transport, *attachment);
  return &attachments_[file].back().second;
}

transport::Segment Transfer::segment_of(const Piece& piece, std::uint32_t slot,
                                        const transport::Attachment& file) const {
  const auto& leg = spec_.legs[piece.leg];
  transport::Segment made;
  made.cookie = (std::uint64_t{id_} << 32) | slot;
  made.direction = spec_.direction;
  made.direct_io = piece.direct_io;
  made.file = piece.direct_io ? file.direct_token : file.token;
  made.address = leg.address + (piece.payload.offset - leg.range.offset);
  made.file_offset = piece.payload.offset;
  made.size_bytes = piece.payload.size_bytes;
  const std::uint64_t mask = piece.align_bytes - 1;
  made.envelope_offset = made.file_offset & ~mask;
  made.envelope_bytes = ((end_of(piece.payload) + mask) & ~mask) - made.envelope_offset;
  made.dontcache = piece.dontcache;
  made.trim = piece.trim;
  return made;
}

std::uint32_t Transfer::take_slot() {
  if (free_slots_.empty()) {
    slots_.emplace_back();
    free_slots_.reserve(slots_.capacity());  // so that giving one back needs no memory
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }
  const auto slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

transport::Transport* Transfer::transport_of(const Piece& piece) {
  auto* transport = routes_.of(piece.route, piece.direct_io);
  if (transport != nullptr) return transport;
  stop({ErrorKind::unsupported, ErrorOrigin::straightway, 0,
        std::string(to_string(spec_.direction)) + " by the route " + to_string(piece.route),
        spec_.files[spec_.legs[piece.leg].file].path, piece.payload.offset,
        "no transport serves it here", "use policy auto"});
  return nullptr;
}

// Makes the next segments as far as they are for the same transport, which is the result; null
// where there are none, the disk has enough to do, or the transfer had to stop.
transport::Transport* Transfer::fill_batch(std::size_t limit) {
  transport::Transport* batch_for = nullptr;
  std::uint64_t cold_in_batch = 0;
  Piece piece;
  while (batch_.size() < limit && take_piece(piece)) {
    auto* transport = transport_of(piece);
    if (transport == nullptr) return nullptr;
    const bool is_full = piece.fills_cache && !cold_readers_.has_room(cold_in_batch);
    if (is_full || (batch_for != nullptr && transport != batch_for)) {
      ready_.push_front(piece);
      return batch_for;
    }
    cold_in_batch += piece.fills_cache ? 1 : 0;
    const auto* attachment = attach(*transport, spec_.legs[piece.leg].file);
    if (attachment == nullptr) return nullptr;
    batch_for = transport;
    const auto slot = take_slot();
    batch_.push_back(segment_of(piece, slot, *attachment));
    slots_[slot] = piece;
  }
  return batch_for;
}

// Hands the next segments over; what the transport does not take goes first the next time. False
// where it took fewer than there were, or there were none.
bool Transfer::submit_batch(std::size_t limit, std::uint64_t now_ns) {
  batch_.clear();
  auto* transport = fill_batch(limit);
  const auto taken = transport == nullptr ? 0 : transport->submit(batch_);
  in_flight_ += static_cast<std::uint32_t>(taken);
  const auto fills = [this](const transport::Segment& made) {
    return slots_[static_cast<std::uint32_t>(made.cookie)].fills_cache;
  };
  const auto end = batch_.begin() + static_cast<std::ptrdiff_t>(taken);
  cold_readers_.begin(static_cast<std::uint64_t>(std::count_if(batch_.begin(), end, fills)),
                      now_ns);
  for (auto i = batch_.size(); i > taken; --i) {
    const auto slot = static_cast<std::uint32_t>(batch_[i - 1].cookie);
    if (!stopped_) ready_.push_front(slots_[slot]);
    free_slots_.push_back(slot);
  }
  return taken > 0 && taken == batch_.size();
}

bool Transfer::step(std::uint64_t now_ns) {
  if (started_ns_ == 0) started_ns_ = now_ns;
  if (!stopped_ && !drained() && now_ns >= spec_.deadline_ns) {
    stop(deadline_error(
        std::string(to_string(spec_.direction)) + " " + std::to_string(wanted_bytes_) + " bytes",
        spec_.files.empty() ? "" : spec_.files.front().path, "the deadline passed"));
  }
  const auto before = in_flight_;
  // Few at first: a transport that is nearly full gives the rest back.
  for (auto limit = first_batch; !stopped_ && submit_batch(limit, now_ns);
       limit = std::min(limit * 2, largest_batch)) {
  }
  return in_flight_ > before;
}

void Transfer::stop(Error reason) {
  if (!error_) error_ = std::move(reason);
  stopped_ = true;
  ready_.clear();
  again_.clear();
}

void Transfer::count_bytes(Piece& piece, std::uint64_t bytes) {
  auto& share = shares_[index(piece.route)];
  share.bytes += bytes;
  if (!std::exchange(piece.counted, true)) ++share.segments;
  // An edge explains the share only where nothing else took the route.
  if (share.reason == Reason::none || share.reason == Reason::edge_block) {
    share.reason = piece.reason;
  }
  moved_bytes_ += bytes;
  leg_bytes_[piece.leg] += bytes;
}

void Transfer::complete(const transport::Completion& completion, std::uint64_t now_ns) {
  const auto slot = static_cast<std::uint32_t>(completion.cookie);
  Piece piece = slots_[slot];
  free_slots_.push_back(slot);
  --in_flight_;
  if (piece.fills_cache) {
    cold_readers_.end(completion.result > 0 ? static_cast<std::uint64_t>(completion.result) : 0,
                      now_ns);
  }
  if (completion.disk_bytes < 0) disk_bytes_ = -1;
  if (disk_bytes_ >= 0) disk_bytes_ += completion.disk_bytes;
  if (completion.result > 0) {
    if (first_byte_ns_ == 0) first_byte_ns_ = now_ns;
    count_bytes(piece, static_cast<std::uint64_t>(completion.result));
  }
  settle(piece, completion);
  if (drained()) drop_trimmed();
}

// The same read, whose pages are dropped afterwards if they were not there before.
void Transfer::forgo_dontcache(Piece& piece) {
  piece.dontcache = false;
  piece.reason = Reason::cold_trimmed;
}

void Transfer::cache_after_all(Piece piece) {
  if (stopped_) return;
  no_dontcache_ = true;
  forgo_dontcache(piece);
  ++retries_;
  again_.push_back(piece);
}

void Transfer::settle(Piece piece, const transport::Completion& completion) {
  if (piece.route == Route::pinned_cache && completion.result == -ESTALE) {
    return stopped_ ? void() : leave_pin(piece);
  }
  auto verdict = completion.error
                     ? Verdict::fail
                     : judge(spec_.direction, completion.result, piece.payload.size_bytes,
                             piece.direct_io || piece.dontcache, piece.attempts, piece.route);
  if (verdict == Verdict::fall_back && piece.dontcache) return cache_after_all(piece);
  if (verdict == Verdict::fall_back && !spec_.may_fall_back) verdict = Verdict::fail;
  if (verdict == Verdict::fail) return stop(failure(piece, completion));
  if (piece.confirms_end && completion.result > 0 && !spec_.may_fall_back) {
    return stop(false_end_error(spec_.files[spec_.legs[piece.leg].file].path, piece.payload));
  }
  if (stopped_) return;
  switch (verdict) {
    case Verdict::rest:
      return submit_rest(piece, static_cast<std::uint64_t>(completion.result));
    case Verdict::again:
      ++piece.attempts;
      ++retries_;
      return again_.push_back(piece);
    case Verdict::fall_back:
      return fall_back(piece, static_cast<std::int32_t>(-completion.result));
    case Verdict::end_of_file:
      return goes_by_vendor(piece) ? confirm_end(piece) : meet_end(piece);
    default:
      return;
  }
}

// To the page cache, as the space allows.
void Transfer::change_route(Piece& piece) const {
  if (piece.route == Route::staged || piece.route == Route::buffered) return;
  // Only device memory that the CPU does not reach has a ring.
  const bool by_ring =
      piece.route != Route::direct_host && routes_.of(Route::staged, false) != nullptr;
  piece.route = by_ring ? Route::staged : Route::buffered;
  piece.counted = false;
}

void Transfer::leave_direct(Piece& piece) const {
  piece.direct_io = false;
  piece.align_bytes = 1;
  piece.attempts = 0;
  piece.reason = Reason::fell_back;
  change_route(piece);
}

// The bytes behind a short transfer. Where O_DIRECT stopped inside a block (the end of a file that
// shrank), the rest is an edge and goes the buffered way.
void Transfer::submit_rest(Piece piece, std::uint64_t moved) {
  piece.payload.offset += moved;
  piece.payload.size_bytes -= moved;
  piece.attempts = 0;
  if (piece.direct_io && piece.payload.offset % piece.align_bytes != 0) {
    piece.direct_io = false;
    piece.align_bytes = 1;
    piece.reason = Reason::edge_block;
    change_route(piece);
  }
  ++retries_;
  again_.push_back(piece);
}

void Transfer::fall_back(Piece piece, std::int32_t code) {
  gave_up_[index(piece.route)] = true;
  leave_direct(piece);
  ++fallbacks_;
  if (fallback_code_ == 0) fallback_code_ = code;
  again_.push_back(piece);
}

// The pages were not those of the file (any more): the same bytes through the ring.
void Transfer::leave_pin(Piece piece) {
  piece.route = Route::staged;
  piece.reason = Reason::pin_lost;
  piece.counted = false;
  left_pin_ = true;
  ++fallbacks_;
  if (fallback_code_ == 0) fallback_code_ = ESTALE;
  again_.push_back(piece);
}

// The library says that the file ends here. The kernel knows, and its word ends the transfer.
void Transfer::confirm_end(Piece piece) {
  leave_direct(piece);
  piece.confirms_end = true;
  ++retries_;
  again_.push_back(piece);
}

// Nothing of this leg lies at or behind the end any more.
void Transfer::meet_end(const Piece& piece) {
  ends_[piece.leg] = std::min(ends_[piece.leg], piece.payload.offset);
  if (leg_ == piece.leg) {  // segments that were not submitted yet lie behind it
    run_ = spec_.legs[leg_].run_count;
    skip_finished_legs();
  }
  const auto is_behind = [&](const Piece& waiting) {
    return waiting.leg == piece.leg && waiting.payload.offset >= ends_[piece.leg];
  };
  std::erase_if(again_, is_behind);
  std::erase_if(ready_, is_behind);
}

Error Transfer::failure(const Piece& piece, const transport::Completion& completion) const {
  const auto& path = spec_.files[spec_.legs[piece.leg].file].path;
  if (completion.error) {
    Error error = *completion.error;
    error.path = path;
    error.offset = piece.payload.offset;
    return error;
  }
  const auto code = completion.result < 0 ? static_cast<std::int32_t>(-completion.result) : EIO;
  auto error = transfer_error(spec_.direction, path, piece.payload, code);
  const bool to_device = piece.route == Route::p2pdma || piece.route == Route::nvfs;
  if (to_device && !spec_.may_fall_back &&
      judge(spec_.direction, -code, 1, true, 0, piece.route) == Verdict::fall_back) {
    error.kind = ErrorKind::route_refused;
    error.why =
        goes_by_vendor(piece)
            ? "the vendor's library refused the transfer (" + error.why + ")"
            : "the kernel refused storage DMA into this memory (" + os::errno_text(code) + ")";
    error.advice = "use policy auto, which falls back to a copy by the CPU";
  } else if (piece.direct_io && !spec_.may_fall_back && (code == EINVAL || code == EOPNOTSUPP)) {
    error.kind = ErrorKind::route_refused;
    error.why = "the file system refused O_DIRECT (" + error.why + ")";
    error.advice = "use policy auto, which falls back to the page cache";
  }
  return error;
}

// Behind an end of file that was met late, other segments may have read bytes: they do not count,
// since the caller gets the file's bytes up to its end.
std::uint64_t Transfer::leg_moved(std::size_t leg) const {
  return ends_[leg] == no_end ? leg_bytes_[leg] : ends_[leg] - spec_.legs[leg].range.offset;
}

bool Transfer::used(const transport::Transport& transport) const {
  return std::ranges::any_of(attachments_, [&](const Attachments& of_file) {
    return std::ranges::any_of(of_file,
                               [&](const auto& entry) { return entry.first == &transport; });
  });
}

void Transfer::account(Receipt& receipt) const {
  const bool measured = disk_bytes_ >= 0 && moved_bytes_ > 0 && spec_.direction == Direction::read;
  receipt.routes = shares_;
  receipt.retries = retries_;
  receipt.fallbacks += fallbacks_;  // to those before anything moved
  if (receipt.fallback_code == 0) receipt.fallback_code = fallback_code_;
  for (const auto route : {Route::nvfs, Route::p2pdma, Route::direct_host}) {
    if (gave_up_[index(route)]) receipt.refused[index(route)] = Reason::fell_back;
  }
  receipt.found = windows_.found();
  if (receipt.found.looked())
    receipt.cold_reason = spec_.legs[windows_of_.first].runs[windows_of_.second].cold_reason;
  if (left_pin_) receipt.refused[index(Route::pinned_cache)] = Reason::pin_lost;
  receipt.disk_measured = measured;
  receipt.disk_bytes = measured ? static_cast<std::uint64_t>(disk_bytes_) : 0;
  receipt.times.started_ns = started_ns_;
  receipt.times.first_byte_ns = first_byte_ns_;
  receipt.wanted_bytes = wanted_bytes_;
  receipt.moved_bytes = 0;
  auto table = spec_.legs.size() > 1 ? std::make_shared<RangeTable>() : nullptr;
  if (table) {
    for (auto* column : {&table->offset, &table->wanted_bytes, &table->moved_bytes}) {
      column->reserve(spec_.legs.size());
    }
  }
  for (std::size_t i = 0; i < spec_.legs.size(); ++i) {
    const auto& range = spec_.legs[i].range;
    const auto moved = leg_moved(i);
    receipt.moved_bytes += moved;
    if (moved < range.size_bytes && !receipt.ended_early && spec_.direction == Direction::read) {
      receipt.ended_early = true;
      receipt.end_of_file = range.offset + moved;
    }
    if (!table) continue;
    table->offset.push_back(range.offset);
    table->wanted_bytes.push_back(range.size_bytes);
    table->moved_bytes.push_back(moved);
  }
  receipt.ranges = std::move(table);
  for (const auto route : all_routes) {
    auto& share = receipt.routes[index(route)];
    if (share.bytes > 0) {  // a cold part took it, or an edge
      auto& refused = receipt.refused[index(route)];
      if (refused == Reason::not_preferred) refused = Reason::none;
    }
    share.evidence = own_evidence(route, spec_.direction, share.bytes, measured ? disk_bytes_ : -1);
  }
}

}  // namespace straightway::drive
