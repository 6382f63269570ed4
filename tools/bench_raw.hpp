#pragma once
// What the bench holds the library against: plain reads and writes by plain threads, and what it
// does to the page cache before it measures.

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "straightway/result.hpp"

namespace straightway::tools {

struct Piece {
  std::uint64_t offset = 0;
  std::size_t size_bytes = 0;
  unsigned thread = 0;  // which of the threads has it
};

// Calls work for every piece of size_bytes, in order, from that many threads. The first error ends
// it, as does an interruption.
Result<void> each_piece(std::uint64_t size_bytes, std::size_t piece_bytes, unsigned threads,
                        const std::function<Result<void>(const Piece&)>& work);

// Reads or writes the whole piece; an error names the file. flags: RWF_*.
Result<void> read_piece(int fd, const std::string& path, std::uint64_t offset, char* to,
                        std::size_t size_bytes, int flags = 0);
Result<void> write_piece(int fd, const std::string& path, std::uint64_t offset, const char* from,
                         std::size_t size_bytes);

// A way of reading or writing a file that needs nothing but the kernel.
struct RawWay {
  const char* name = "";  // "O_DIRECT 8 x 1 MiB"
  unsigned threads = 1;
  std::size_t piece_bytes = 1 << 20;
  bool direct = false;
  bool uncached = false;          // RWF_DONTCACHE
  std::uint64_t ahead_bytes = 0;  // readahead() this far in front of the readers
};
inline constexpr std::size_t mib = std::size_t{1} << 20;
inline constexpr std::array<RawWay, 5> raw_cold_ways = {
    {{"O_DIRECT 8 x 1 MiB", 8, mib, true, false, 0},
     {"O_DIRECT 2 x 8 MiB", 2, 8 * mib, true, false, 0},
     {"buffered, 4 readers", 4, mib, false, false, 0},
     {"buffered, 4 readers, readahead 128 MiB", 4, mib, false, false, 128 * mib},
     {"RWF_DONTCACHE 8 x 1 MiB", 8, mib, false, true, 0}}};
inline constexpr std::array<RawWay, 4> raw_write_ways = {
    {{"page cache, 1 writer", 1, mib, false, false, 0},
     {"page cache, 4 writers", 4, mib, false, false, 0},
     {"O_DIRECT 8 x 1 MiB", 8, mib, true, false, 0},
     {"O_DIRECT 2 x 8 MiB", 2, 8 * mib, true, false, 0}}};

// Through scratch, which has threads x piece_bytes. Pieces that are no whole block (a file's end)
// go through the page cache.
Result<void> read_raw(const RawWay& way, const std::string& path, std::uint64_t size_bytes,
                      char* scratch);
// Writes scratch again and again into an open file. The direct ways write whole blocks only.
Result<void> write_raw(const RawWay& way, int fd, const std::string& path, std::uint64_t size_bytes,
                       const char* scratch);

// Writes back what is dirty, then takes the range out of the page cache. An error where more than
// a hundredth stays: the text says how much.
Result<void> drop_cache(int fd, const std::string& path, std::uint64_t offset,
                        std::uint64_t size_bytes);

// Brings a range into the page cache, and nothing around it.
Result<void> warm_cache(int fd, const std::string& path, std::uint64_t offset,
                        std::uint64_t size_bytes);

}  // namespace straightway::tools
