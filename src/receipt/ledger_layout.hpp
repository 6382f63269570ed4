#pragma once
// The ledger's layout in memory, the one definition: the writer fills it, readers of other
// processes copy it. docs/ledger.md describes it. Any change of it raises layout_version.
//
// Every counter is an aligned 64-bit word that only grows, changed by one atomic addition. So a
// writer killed at any instant leaves no torn or half-open state, only, for each of its threads, at
// most one transfer that is counted in some words and not yet in others. A sequence lock would
// make such a copy exact but would stay odd for ever after a kill, and would make writers wait.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "receipt/ledger.hpp"

namespace straightway::receipt {

inline constexpr std::string_view ledger_name = "straightway-ledger-1";
inline constexpr std::string_view ledger_link_prefix = "/memfd:straightway-ledger-";
inline constexpr std::uint64_t ledger_magic = 0x5245'4744'454c'5753;  // "SWLEDGER" in memory
inline constexpr std::uint64_t layout_version = 1;
inline constexpr std::size_t stripe_count = 16;  // a power of two

struct SizeCell {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
  std::uint64_t time_ns = 0;
};

// Threads are spread over the stripes, so that they seldom meet on a cache line; a reader adds the
// stripes up. Direction is the first index: 0 read, 1 write.
struct alignas(64) LedgerStripe {
  struct RouteCell {
    std::uint64_t bytes = 0;
    std::uint64_t segments = 0;
  };
  std::array<std::array<RouteCell, route_count>, 2> routes{};
  std::array<std::array<SizeCell, size_class_count>, 2> sizes{};
  std::array<std::array<std::uint64_t, latency_class_count>, 2> latencies{};
  std::array<std::uint64_t, 2> errors{};
  std::uint64_t retries = 0;
  std::uint64_t fallbacks = 0;
  std::uint64_t short_reads = 0;
  std::uint64_t layer_n = 0;
  std::uint64_t layer_nvfs = 0;
  std::uint64_t layer_p2pdma = 0;
  std::uint64_t layer_posix = 0;
};

// The first three words keep their place and meaning in every version.
struct LedgerHeader {
  std::uint64_t magic = 0;
  std::uint64_t version = 0;
  std::uint64_t size_bytes = 0;  // of the whole
};

struct LedgerLayout {
  LedgerHeader header;
  std::int64_t pid = 0;          // as the writer sees itself
  std::uint64_t started_ns = 0;  // CLOCK_REALTIME
  std::array<char, 88> program{};
  std::array<LedgerStripe, stripe_count> stripes{};
};

static_assert(offsetof(LedgerLayout, stripes) == 128);
static_assert(sizeof(LedgerStripe) == 1088);
static_assert(sizeof(LedgerLayout) == 128 + stripe_count * 1088);
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);

// The class of a request by what it wanted: below 4 KiB, 64 KiB, 1 MiB, ... (16 times each).
constexpr std::size_t size_class(std::uint64_t size_bytes) {
  const auto bits = static_cast<std::size_t>(std::bit_width(size_bytes));
  return bits < 13 ? 0 : std::min((bits - 13) / 4 + 1, size_class_count - 1);
}
// What every size of the class is below; UINT64_MAX for the last.
constexpr std::uint64_t size_class_limit_bytes(std::size_t i) {
  return i + 1 < size_class_count ? std::uint64_t{4096} << (4 * i)
                                  : std::numeric_limits<std::uint64_t>::max();
}

// Class 0 is below 1 us, each next one below twice as much; the last takes the rest.
constexpr std::size_t latency_class(std::uint64_t duration_ns) {
  const auto bits = static_cast<std::size_t>(std::bit_width(duration_ns / 1000));
  return std::min(bits, latency_class_count - 1);
}
constexpr std::uint64_t latency_class_limit_us(std::size_t i) {
  return i + 1 < latency_class_count ? std::uint64_t{1} << i
                                     : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace straightway::receipt
