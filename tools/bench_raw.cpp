#include "bench_raw.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "arguments.hpp"
#include "interrupt.hpp"
#include "os/descriptor.hpp"
#include "os/facts.hpp"
#include "plan/units.hpp"

namespace straightway::tools {
namespace {

constexpr std::size_t block_bytes = 4096;
constexpr int dontcache = 0x80;  // RWF_DONTCACHE, Linux 6.14; not in older headers

Error at(Error error, std::uint64_t offset) {
  error.offset = offset;
  return error;
}

// Keeps readahead() some way in front of the readers, as one of them.
class Ahead {
 public:
  Ahead(int fd, std::uint64_t size_bytes, std::uint64_t ahead_bytes)
      : fd_(fd), size_bytes_(size_bytes), ahead_bytes_(ahead_bytes) {}
  void advance(std::uint64_t offset) {
    const std::lock_guard lock(mutex_);
    while (advised_ < std::min(size_bytes_, offset + ahead_bytes_)) {
      ::readahead(fd_, static_cast<off64_t>(advised_), step_bytes);
      advised_ += step_bytes;
    }
  }

 private:
  static constexpr std::size_t step_bytes = 4 * mib;
  int fd_;
  std::uint64_t size_bytes_;
  std::uint64_t ahead_bytes_;
  std::mutex mutex_;
  std::uint64_t advised_ = 0;
};

}  // namespace

Result<void> each_piece(std::uint64_t size_bytes, std::size_t piece_bytes, unsigned threads,
                        const std::function<Result<void>(const Piece&)>& work) {
  const std::uint64_t count = (size_bytes + piece_bytes - 1) / piece_bytes;
  std::atomic<std::uint64_t> next = 0;
  std::mutex mutex;
  std::optional<Error> first_error;
  const auto serve = [&](unsigned thread) {
    for (std::uint64_t i = next++; i < count; i = next++) {
      const std::uint64_t offset = i * piece_bytes;
      const std::size_t size = std::min<std::uint64_t>(piece_bytes, size_bytes - offset);
      auto done = interrupted() != 0 ? Result<void>(interrupted_error("go on"))
                                     : work({offset, size, thread});
      if (done) continue;
      next = count;
      const std::lock_guard lock(mutex);
      if (!first_error) first_error = done.error();
    }
  };
  {
    std::vector<std::jthread> running;
    const auto useful = static_cast<unsigned>(std::min<std::uint64_t>(threads, count));
    for (unsigned thread = 1; thread < useful; ++thread) running.emplace_back(serve, thread);
    serve(0);
  }
  if (first_error) return *first_error;
  return {};
}

Result<void> read_piece(int fd, const std::string& path, std::uint64_t offset, char* to,
                        std::size_t size_bytes, int flags) {
  while (size_bytes > 0) {
    const iovec piece{to, size_bytes};
    const ssize_t got = ::preadv2(fd, &piece, 1, static_cast<off_t>(offset), flags);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return at(system_error(errno, "read", path), offset);
    if (got == 0) {
      Error error = at(system_error(EIO, "read", path), offset);
      error.why = "the file became shorter";
      return error;
    }
    to += got;
    offset += static_cast<std::uint64_t>(got);
    size_bytes -= static_cast<std::size_t>(got);
  }
  return {};
}

Result<void> write_piece(int fd, const std::string& path, std::uint64_t offset, const char* from,
                         std::size_t size_bytes) {
  while (size_bytes > 0) {
    const ssize_t wrote = ::pwrite(fd, from, size_bytes, static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return at(system_error(wrote < 0 ? errno : EIO, "write", path), offset);
    from += wrote;
    offset += static_cast<std::uint64_t>(wrote);
    size_bytes -= static_cast<std::size_t>(wrote);
  }
  return {};
}

Result<void> read_raw(const RawWay& way, const std::string& path, std::uint64_t size_bytes,
                      char* scratch) {
  const os::Descriptor plain(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!plain) return system_error(errno, "open", path);
  os::Descriptor direct;
  if (way.direct) {
    direct = os::Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
    if (!direct) return system_error(errno, "open with O_DIRECT", path);
  }
  Ahead ahead(plain.get(), size_bytes, way.ahead_bytes);
  return each_piece(size_bytes, way.piece_bytes, way.threads, [&](const Piece& piece) {
    if (way.ahead_bytes > 0) ahead.advance(piece.offset);
    const bool whole = piece.size_bytes % block_bytes == 0;
    return read_piece(way.direct && whole ? direct.get() : plain.get(), path, piece.offset,
                      scratch + piece.thread * way.piece_bytes, piece.size_bytes,
                      way.uncached ? dontcache : 0);
  });
}

Result<void> write_raw(const RawWay& way, int fd, const std::string& path, std::uint64_t size_bytes,
                       const char* scratch) {
  os::Descriptor direct;
  if (way.direct) {
    const std::string link = fmt::format("/proc/self/fd/{}", fd);
    direct = os::Descriptor(::open(link.c_str(), O_WRONLY | O_CLOEXEC | O_DIRECT));
    if (!direct) return system_error(errno, "open with O_DIRECT", path);
    size_bytes -= size_bytes % block_bytes;
    // Writers that extend the file wait for each other.
    static_cast<void>(::fallocate(fd, 0, 0, static_cast<off_t>(size_bytes)));
  }
  return each_piece(size_bytes, way.piece_bytes, way.threads, [&](const Piece& piece) {
    return write_piece(way.direct ? direct.get() : fd, path, piece.offset,
                       scratch + piece.thread * way.piece_bytes, piece.size_bytes);
  });
}

Result<void> drop_cache(int fd, const std::string& path, std::uint64_t offset,
                        std::uint64_t size_bytes) {
  static_cast<void>(::fdatasync(fd));  // what stays dirty stays resident, and shows below
  if (const int code = ::posix_fadvise(fd, static_cast<off_t>(offset),
                                       static_cast<off_t>(size_bytes), POSIX_FADV_DONTNEED)) {
    return system_error(code, "take out of the page cache", path);
  }
  const os::Residency left = os::read_residency(fd, offset, size_bytes);
  if (left.known && left.resident_bytes <= size_bytes / 100) return {};
  Error error = usage_error(
      "take out of the page cache",
      left.known ? fmt::format("{} of {} stay there", plan::format_bytes(left.resident_bytes),
                               plan::format_bytes(size_bytes))
                 : left.why_unknown);
  error.kind = ErrorKind::unsupported;
  error.path = path;
  return error;
}

Result<void> warm_cache(int fd, const std::string& path, std::uint64_t offset,
                        std::uint64_t size_bytes) {
  static_cast<void>(::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM));
  std::vector<char> buffer(mib);
  for (std::uint64_t done = 0; done < size_bytes; done += mib) {
    if (interrupted() != 0) return interrupted_error("bring into the page cache");
    const std::size_t size = std::min<std::uint64_t>(mib, size_bytes - done);
    if (auto read = read_piece(fd, path, offset + done, buffer.data(), size); !read) return read;
  }
  return {};
}

}  // namespace straightway::tools
