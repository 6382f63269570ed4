#pragma once
// The memory in which `straightway run` sums up the receipts of a program, the one definition: the
// command line makes it, the processes of the program fill it, and it outlives them. Any change of
// it raises tally_version. Counters are aligned words, changed by one atomic operation.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "straightway/route.hpp"

namespace straightway::receipt {

inline constexpr const char* tally_name = "straightway-run-1";
inline constexpr std::uint64_t tally_magic = 0x5953'4c41'5457'5300;
inline constexpr std::uint64_t tally_version = 1;

inline constexpr std::size_t tally_process_limit = 255;
inline constexpr std::size_t tally_file_limit = 4096;
inline constexpr std::size_t tally_way_limit = 7;
// How many places are looked at for a file that is not known yet.
inline constexpr std::size_t tally_probes = 64;

// A text is there once `written` is 1; the writer of it may have been killed before.
struct TallyText {
  std::uint64_t written = 0;
  std::array<char, 208> text{};
};

// Bytes of one route for one reason.
struct TallyWay {
  std::uint64_t tag = 0;  // 0: free; else way_tag(route, reason)
  std::uint64_t bytes = 0;
  std::uint64_t segments = 0;
  TallyText sentence;
};

struct TallyRefusal {
  std::uint64_t reason = 0;  // of the first refusal; 0: none
  TallyText sentence;
};

// All receipts of one file, one direction and one memory.
struct alignas(4096) TallyFile {
  std::uint64_t key = 0;  // 0: free
  std::uint64_t written = 0;
  std::uint64_t what = 0;  // direction, door, space and device, see tally.cpp
  std::array<char, 760> path{};
  std::uint64_t requests = 0;
  std::uint64_t wanted_bytes = 0;
  std::uint64_t time_ns = 0;  // of all requests, added up
  std::uint64_t retries = 0;
  std::uint64_t fallbacks = 0;
  std::uint64_t short_reads = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t disk_unmeasured = 0;  // requests
  std::uint64_t hot_bytes = 0;
  std::uint64_t cold_bytes = 0;
  std::uint64_t unknown_bytes = 0;
  std::uint64_t end = 0;  // the furthest byte asked for
  std::uint64_t layer_n = 0, layer_nvfs = 0, layer_p2pdma = 0, layer_posix = 0;
  std::array<TallyWay, tally_way_limit> ways{};      // the last takes what finds no place
  std::array<TallyRefusal, route_count> refusals{};  // by Route
};
static_assert(sizeof(TallyFile) == 4096);

struct TallyProcess {
  std::int64_t pid = 0;
  std::array<char, 56> program{};
};

struct TallyLayout {
  std::uint64_t magic = 0;
  std::uint64_t version = 0;
  std::uint64_t size_bytes = 0;           // of the whole
  std::uint64_t contexts = 0;             // how many were made, each of which claims a process
  std::array<std::uint64_t, 2> errors{};  // by Direction
  std::array<std::uint64_t, 2> unused{};
  std::array<TallyProcess, tally_process_limit> processes{};
  std::array<TallyFile, tally_file_limit> files{};
  TallyFile others;  // what finds no place among the files
};

constexpr std::uint64_t way_tag(Route route, Reason reason) {
  return ((static_cast<std::uint64_t>(route) + 1) << 8) | static_cast<std::uint64_t>(reason);
}

}  // namespace straightway::receipt
