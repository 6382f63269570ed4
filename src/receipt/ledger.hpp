#pragma once
// The ledger: this process's statistics, in a memfd sealed against shrinking, growing and others'
// writing, found by other processes of the same user through /proc/PID/fd. Fed by receipts only.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "straightway/receipt.hpp"
#include "straightway/result.hpp"

namespace straightway::receipt {

struct LedgerLayout;  // src/receipt/ledger_layout.hpp, the one definition, shared with the reader

class Ledger {
 public:
  // Never a descriptor below 3; CLOEXEC.
  static Result<std::unique_ptr<Ledger>> create();
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // From any thread, wait-free, no allocation. In a forked child: nothing happens, since these are
  // the parent's figures.
  void add(const Receipt& receipt) noexcept;
  void add_error(Direction direction) noexcept;

 private:
  Ledger(int fd, LedgerLayout* layout, std::uint64_t* alive)
      : fd_(fd), layout_(layout), alive_(alive) {}
  int fd_;
  LedgerLayout* layout_;
  std::uint64_t* alive_;  // 1; the kernel makes it 0 in a forked child, which then counts nothing
};

inline constexpr std::size_t size_class_count = 8;  // <4K, <64K, <1M, <16M, <256M, <4G, <64G, more
inline constexpr std::size_t latency_class_count = 24;  // by powers of two of a microsecond

// A consistent copy, checked as hostile input.
struct LedgerSnapshot {
  struct Cell {
    std::uint64_t requests = 0;
    std::uint64_t bytes = 0;
    std::uint64_t time_ns = 0;
  };
  std::int64_t pid = 0;
  std::string program;
  std::uint64_t started_ns = 0;                                   // CLOCK_REALTIME
  std::array<std::array<std::uint64_t, 2>, route_count> bytes{};  // by route, direction
  std::array<std::array<std::uint64_t, 2>, route_count> segments{};
  std::array<std::array<Cell, 2>, size_class_count> sizes{};
  std::array<std::array<std::uint64_t, 2>, latency_class_count> latencies{};
  std::array<std::uint64_t, 2> errors{};
  std::uint64_t retries = 0;
  std::uint64_t fallbacks = 0;
  std::uint64_t short_reads = 0;
  LayerCounters layer;
};

// Of one process, all its ledgers added up. ErrorKind::not_found where it has none (or is gone),
// permission where it is another user's, unsupported where its layout is of another version,
// wrong_file_type where it only pretends to be one.
Result<LedgerSnapshot> read_ledger(std::int64_t pid);
// The processes of this user that have one.
std::vector<std::int64_t> find_ledgers();

std::string to_text(const LedgerSnapshot& snapshot);
std::string to_json(const LedgerSnapshot& snapshot);

}  // namespace straightway::receipt
