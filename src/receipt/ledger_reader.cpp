// Reads other processes' ledgers.

#include <cstring>
#include <limits>

#include "os/shown_memory.hpp"
#include "receipt/ledger.hpp"
#include "receipt/ledger_layout.hpp"

namespace straightway::receipt {
namespace {

constexpr os::ShownForm ledger_form{
    .link_prefix = ledger_link_prefix,
    .magic = ledger_magic,
    .version = layout_version,
    .size_bytes = sizeof(LedgerLayout),
    .name = "a ledger",
    .when_none = "it must have used Straightway, with STRAIGHTWAY_LEDGER not 0"};
static_assert(offsetof(LedgerLayout, pid) == offsetof(os::ShownHeader, pid));

void add(std::uint64_t& sum, std::uint64_t value) {
  if (__builtin_add_overflow(sum, value, &sum)) sum = std::numeric_limits<std::uint64_t>::max();
}

void add_stripe(LedgerSnapshot& sum, const LedgerStripe& stripe) {
  for (std::size_t way = 0; way < 2; ++way) {
    for (std::size_t i = 0; i < route_count; ++i) {
      add(sum.bytes[i][way], stripe.routes[way][i].bytes);
      add(sum.segments[i][way], stripe.routes[way][i].segments);
    }
    for (std::size_t i = 0; i < size_class_count; ++i) {
      add(sum.sizes[i][way].requests, stripe.sizes[way][i].requests);
      add(sum.sizes[i][way].bytes, stripe.sizes[way][i].bytes);
      add(sum.sizes[i][way].time_ns, stripe.sizes[way][i].time_ns);
    }
    for (std::size_t i = 0; i < latency_class_count; ++i) {
      add(sum.latencies[i][way], stripe.latencies[way][i]);
    }
    add(sum.errors[way], stripe.errors[way]);
  }
  add(sum.retries, stripe.retries);
  add(sum.fallbacks, stripe.fallbacks);
  add(sum.short_reads, stripe.short_reads);
  add(sum.layer.n, stripe.layer_n);
  add(sum.layer.nvfs, stripe.layer_nvfs);
  add(sum.layer.p2pdma, stripe.layer_p2pdma);
  add(sum.layer.posix, stripe.layer_posix);
}

// Fit for a terminal: what is not printable ASCII becomes '?'.
std::string printable(const std::array<char, 88>& program) {
  std::string text;
  for (const char c : program) {
    if (c == '\0') break;
    text += c >= 0x20 && c < 0x7f ? c : '?';
  }
  return text;
}

void add_layout(LedgerSnapshot& sum, const LedgerLayout& layout) {
  if (sum.started_ns == 0 || layout.started_ns < sum.started_ns) sum.started_ns = layout.started_ns;
  if (sum.program.empty()) sum.program = printable(layout.program);
  for (const LedgerStripe& stripe : layout.stripes) add_stripe(sum, stripe);
}

}  // namespace

Result<LedgerSnapshot> read_ledger(std::int64_t pid) {
  LedgerSnapshot sum;
  auto layout = std::make_unique<LedgerLayout>();
  const auto add_copy = [&](std::span<const std::byte> copy) {
    std::memcpy(static_cast<void*>(layout.get()), copy.data(), sizeof(LedgerLayout));
    add_layout(sum, *layout);
  };
  if (auto read = os::read_shown(pid, ledger_form, add_copy); !read) return read.error();
  sum.pid = pid;
  return sum;
}

std::vector<std::int64_t> find_ledgers() {
  std::vector<std::int64_t> pids;
  for (const std::int64_t pid : os::own_processes()) {
    const Result<LedgerSnapshot> snapshot = read_ledger(pid);
    // One of another version counts: whoever reads it next is told so.
    if (snapshot || snapshot.error().kind == ErrorKind::unsupported) pids.push_back(pid);
  }
  return pids;
}

}  // namespace straightway::receipt
