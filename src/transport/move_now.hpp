#pragma once
// Moves segments at once, by a transport that completes on submit, in their order (posix).

#include <algorithm>
#include <cerrno>
#include <new>
#include <span>

#include "transport/transport.hpp"

namespace straightway::transport {

// Completion i is segment i's. Where memory runs out, the rest completes with -ENOMEM. As many
// completions as segments.
inline void move_now(Transport& host, std::span<const Segment> segments,
                     std::span<Completion> completions) {
  std::size_t moved = 0;
  try {
    while (moved < segments.size()) {
      const auto count = host.submit(segments.subspan(moved));
      if (count == 0) break;
      host.reap(completions.subspan(moved, count));
      moved += count;
    }
  } catch (const std::bad_alloc&) {
    while (host.reap(completions.subspan(moved)) > 0) {  // of what was moved before: not told
    }
  }
  for (; moved < segments.size(); ++moved) {
    completions[moved] = {.cookie = segments[moved].cookie, .result = -ENOMEM, .error = nullptr};
  }
}

}  // namespace straightway::transport
