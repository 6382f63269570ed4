// Real references to pages: vmsplice puts the pages of a mapping into a pipe without copying them.
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "state.hpp"

namespace fake {
namespace {

constexpr std::size_t page = 4096;
constexpr int pipe_bytes = 1 << 20;  // what any user may have: 256 pages

bool read_all(int fd, char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::read(fd, to, size);
    if (got <= 0) return false;
    to += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

std::shared_ptr<PageHold> PageHold::make(void* at, std::size_t size) {
  std::shared_ptr<PageHold> hold(new PageHold);
  if (reinterpret_cast<std::uintptr_t>(at) % page != 0) return nullptr;
  for (std::size_t held = 0; held < size;) {
    if (!hold->add_pipe(static_cast<char*>(at), size, held)) return nullptr;
  }
  return hold;
}

// Fills one pipe with the pages from `held` on.
bool PageHold::add_pipe(char* at, std::size_t size, std::size_t& held) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  pipes_.push_back({ends[0], ends[1], 0});
  Pipe& made = pipes_.back();
  const int capacity = fcntl(made.write_end, F_SETPIPE_SZ, pipe_bytes);
  if (capacity <= 0) return false;
  auto room = std::min(static_cast<std::size_t>(capacity), size - held);
  while (room > 0) {
    iovec pages{at + held, room};
    const ssize_t spliced = vmsplice(made.write_end, &pages, 1, SPLICE_F_NONBLOCK);
    if (spliced <= 0) return made.size > 0 && errno == EAGAIN;
    made.size += static_cast<std::size_t>(spliced);
    held += static_cast<std::size_t>(spliced);
    room -= static_cast<std::size_t>(spliced);
  }
  return true;
}

PageHold::~PageHold() {
  for (const Pipe& held : pipes_) {
    close(held.read_end);
    close(held.write_end);
  }
}

// tee() doubles the references, and reading those leaves the first ones where they are.
bool PageHold::read(std::size_t offset, char* to, std::size_t size) const {
  std::size_t start = 0;
  for (const Pipe& held : pipes_) {
    const std::size_t begin = std::max(offset, start);
    const std::size_t end = std::min(offset + size, start + held.size);
    if (begin < end) {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) return false;
      std::vector<char> bytes(held.size);
      const bool whole =
          fcntl(ends[1], F_SETPIPE_SZ, pipe_bytes) > 0 &&
          tee(held.read_end, ends[1], held.size, 0) == static_cast<ssize_t>(held.size) &&
          read_all(ends[0], bytes.data(), held.size);
      close(ends[0]);
      close(ends[1]);
      if (!whole) return false;
      std::copy_n(bytes.data() + (begin - start), end - begin, to + (begin - offset));
    }
    start += held.size;
  }
  return start >= offset + size;
}

}  // namespace fake
