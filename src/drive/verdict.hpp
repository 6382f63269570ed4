#pragma once
// What to do with a completion: the one table of retries, short transfers and fallbacks. Pure.

#include <cstdint>

#include "straightway/route.hpp"

namespace straightway::drive {

enum class Verdict : std::uint8_t {
  done,         // all of it moved
  rest,         // a part moved; submit the rest
  again,        // nothing moved and nothing is wrong: submit it again
  end_of_file,  // a read met the end
  fall_back,    // the direct way refused this segment; the same bytes can go the buffered way
  fail,
};

// result: bytes moved or -errno, of wanted_bytes > 0. attempts: how often in a row nothing moved.
// route: p2pdma falls back on what else the kernel answers where peer memory cannot be reached,
// nvfs and p2pdma on what the vendor's library does (result: also a negative code of cuFile).
Verdict judge(Direction direction, std::int64_t result, std::uint64_t wanted_bytes, bool direct_io,
              std::uint32_t attempts, Route route = Route::buffered);

// Interrupted or told to try again this often in a row, a segment fails with the last error.
inline constexpr std::uint32_t attempts_limit = 1000;

}  // namespace straightway::drive
