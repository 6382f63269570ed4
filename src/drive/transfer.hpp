#pragma once
// One transfer: the ranges of a call, as a state machine over the transport contract. It never
// blocks and asks no clock; whoever drives it (the pump, the simulation) calls step() and hands it
// its completions.
//
// Splitting, retry, short transfers, fallback, deadline, cancellation and counting live here, once.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "drive/cache_windows.hpp"
#include "drive/cold_readers.hpp"
#include "straightway/plan.hpp"
#include "straightway/receipt.hpp"
#include "straightway/result.hpp"
#include "transport/transport.hpp"

namespace straightway::drive {

// One range: its planned runs, and where its bytes lie.
struct Leg {
  FileRange range;  // as the caller wanted it
  std::uint64_t address = 0;
  std::uint32_t file = 0;  // index into TransferSpec::files
  std::uint8_t run_count = 0;
  std::array<Run, run_limit> runs{};
};

struct TransferFile {
  transport::FileRef ref;
  std::string path;  // for messages
};

struct TransferSpec {
  Direction direction = Direction::read;
  std::vector<TransferFile> files;
  std::vector<Leg> legs;
  bool may_fall_back = true;               // false under policy direct
  Route vendor_route = Route::nvfs;        // of a ColdWay that is storage DMA into a GPU's memory
  std::uint64_t deadline_ns = UINT64_MAX;  // on the clock that step() is given
  plan::CacheSteps cache_steps;
  // Drops a range's clean whole pages: called when the transfer is drained, for cold ranges that
  // are not to be kept. Readahead of one reader brings back what another had dropped already.
  std::function<void(int fd, const FileRange& range)> drop_pages;
  LookUp look_up;  // for runs with a ColdWay; empty: they are read like any other
};

// Which transport moves which route's segments; null: not available here.
struct Routes {
  std::array<transport::Transport*, route_count> buffered{};  // storage side: the page cache
  std::array<transport::Transport*, route_count> direct{};    // storage side: O_DIRECT
  transport::Transport* of(Route route, bool direct_io) const {
    return direct_io ? direct[index(route)] : buffered[index(route)];
  }
};

class Transfer {
 public:
  // id goes into the upper half of every cookie. The transports outlive the transfer.
  Transfer(TransferSpec spec, const Routes& routes, std::uint32_t id);

  // Submits what the transports take now. Returns whether it submitted anything.
  bool step(std::uint64_t now_ns);
  // One completion whose cookie carries this transfer's id.
  void complete(const transport::Completion& completion, std::uint64_t now_ns);
  // Stops submitting; what is in flight drains. The first reason wins.
  void stop(Error reason);

  // Nothing is in flight, and nothing more will be.
  bool drained() const { return in_flight_ == 0 && (stopped_ || exhausted()); }
  std::uint32_t in_flight() const { return in_flight_; }
  std::uint64_t moved_bytes() const { return moved_bytes_; }
  std::uint64_t wanted_bytes() const { return wanted_bytes_; }
  std::uint64_t deadline_ns() const { return spec_.deadline_ns; }
  const std::optional<Error>& error() const { return error_; }
  std::optional<Error> take_error() { return std::exchange(error_, std::nullopt); }

  // Whether a segment was ever given to it.
  bool used(const transport::Transport& transport) const;

  // Only when drained: writes what moved into a receipt that already says what was wanted.
  void account(Receipt& receipt) const;

 private:
  // A segment under way, or the rest of one.
  struct Piece {
    std::uint32_t leg = 0;
    Route route = Route::buffered;
    Reason reason = Reason::none;
    bool direct_io = false;
    std::uint32_t align_bytes = 1;
    FileRange payload;
    std::uint32_t attempts = 0;
    bool confirms_end = false;  // the vendor's library said that the file ends before it
    bool counted = false;       // as a segment of its route: once, with its first bytes
    bool dontcache = false;
    bool trim = false;
    bool fills_cache = false;  // from a disk: one of the few readers
  };
  using Attachments = std::vector<std::pair<transport::Transport*, transport::Attachment>>;

  bool exhausted() const { return again_.empty() && ready_.empty() && leg_ >= spec_.legs.size(); }
  void skip_finished_legs();
  bool take_piece(Piece& piece);
  Piece take_again();
  Piece new_piece();
  void resolve(Piece& piece, const Run& run);
  void remember_trimmed(const Piece& piece);
  void drop_trimmed();
  transport::Transport* transport_of(const Piece& piece);
  transport::Transport* fill_batch(std::size_t limit);
  bool submit_batch(std::size_t limit, std::uint64_t now_ns);
  std::uint32_t take_slot();
  const transport::Attachment* attach(transport::Transport& transport, std::uint32_t file);
  transport::Segment segment_of(const Piece& piece, std::uint32_t slot,
                                const transport::Attachment& file) const;
  void count_bytes(Piece& piece, std::uint64_t bytes);
  void settle(Piece piece, const transport::Completion& completion);
  void submit_rest(Piece piece, std::uint64_t moved);
  void fall_back(Piece piece, std::int32_t code);
  static void forgo_dontcache(Piece& piece);
  void cache_after_all(Piece piece);
  void leave_pin(Piece piece);
  void change_route(Piece& piece) const;
  // Peer memory, which O_DIRECT reaches by itself, has no ring.
  bool goes_by_vendor(const Piece& piece) const {
    return piece.route == Route::nvfs ||
           (piece.route == Route::p2pdma && routes_.of(Route::staged, false) != nullptr);
  }
  void leave_direct(Piece& piece) const;
  void confirm_end(Piece piece);
  void meet_end(const Piece& piece);
  Error failure(const Piece& piece, const transport::Completion& completion) const;
  std::uint64_t leg_moved(std::size_t leg) const;

  TransferSpec spec_;
  Routes routes_;
  std::uint32_t id_;
  std::vector<Attachments> attachments_;  // by file; one for each transport that moves it
  std::uint32_t leg_ = 0;                 // the next new segment: leg, run, number
  std::uint8_t run_ = 0;
  std::uint64_t segment_ = 0;
  std::deque<Piece> ready_;                // new segments, decided but not yet taken by a transport
  std::vector<Piece> again_;               // go before new segments
  std::vector<transport::Segment> batch_;  // while it is handed over
  std::vector<Piece> slots_;               // in flight, by the lower half of the cookie
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::uint64_t> ends_;  // by leg: the absolute offset where its file ended
  std::vector<std::uint64_t> leg_bytes_;
  CacheWindows windows_;  // of the run windows_of_ (leg, run)
  std::pair<std::uint32_t, std::uint8_t> windows_of_{UINT32_MAX, 0};
  struct Trimmed {
    std::uint32_t file = 0;
    FileRange range;
  };
  ColdReaders cold_readers_;
  std::vector<Trimmed> trimmed_;  // merged where they touch
  bool no_dontcache_ = false;     // a file system refused it
  std::uint32_t in_flight_ = 0;
  bool stopped_ = false;
  std::optional<Error> error_;
  std::uint64_t wanted_bytes_ = 0;
  std::uint64_t moved_bytes_ = 0;
  std::array<RouteShare, route_count> shares_{};
  std::uint32_t retries_ = 0;
  std::uint32_t fallbacks_ = 0;
  std::int32_t fallback_code_ = 0;
  std::array<bool, route_count> gave_up_{};  // fell back from
  bool left_pin_ = false;
  std::int64_t disk_bytes_ = 0;  // -1: some part was not measured
  std::uint64_t started_ns_ = 0;
  std::uint64_t first_byte_ns_ = 0;
};

}  // namespace straightway::drive
