#pragma once
// Which bytes of a file lie in blocks of its own that were written.

#include <cstdint>

namespace straightway::os {

// Where the stretch that begins at `offset`, and in which every byte has such a block, ends: there
// is a hole, a preallocated block that was never written, a place that the file system packs with
// others or keeps compressed or encrypted, or the end of the file. `offset` where there is none.
// Looks as far as `enough` at least. Asks FIEMAP; where that does not reach so far, again after the
// file's dirty pages are written, as O_DIRECT writes those of its range. SEEK_HOLE takes clean
// pages in the page cache over unwritten blocks for data, so it is asked only where a file system
// has no FIEMAP. offset and enough are below 2^63. -errno where the file cannot be asked.
std::int64_t filled_end(int fd, std::uint64_t offset, std::uint64_t enough);

}  // namespace straightway::os
