#include "fingerprint.hpp"

#include <algorithm>
#include <functional>
#include <string_view>

#include "arguments.hpp"
#include "bench_raw.hpp"

namespace straightway::tools {
namespace {

std::uint64_t hash_of(const char* bytes, std::size_t size_bytes) {
  return std::hash<std::string_view>()(std::string_view(bytes, size_bytes));
}

}  // namespace

Error wrong_bytes(const std::string& path, std::uint64_t offset) {
  Error error = usage_error("verify", "the bytes that arrived differ from those in the file",
                            "unless another program wrote to the file meanwhile, this is a bug: "
                            "report it");
  error.kind = ErrorKind::io;
  error.path = path;
  error.offset = offset;
  return error;
}

Result<Fingerprint> Fingerprint::read(int fd, const std::string& path, std::uint64_t size_bytes,
                                      unsigned threads) {
  Fingerprint made;
  made.hashes_.resize((size_bytes + piece_bytes - 1) / piece_bytes);
  std::vector<char> buffers(threads * piece_bytes);
  auto done = each_piece(size_bytes, piece_bytes, threads, [&](const Piece& piece) {
    char* buffer = buffers.data() + piece.thread * piece_bytes;
    auto read = read_piece(fd, path, piece.offset, buffer, piece.size_bytes);
    if (read) made.hashes_[piece.offset / piece_bytes] = hash_of(buffer, piece.size_bytes);
    return read;
  });
  if (!done) return done.error();
  return made;
}

Result<void> Fingerprint::check(const Target& target, std::uint64_t size_bytes, char* scratch,
                                unsigned threads) const {
  return each_piece(size_bytes, piece_bytes, threads, [&](const Piece& piece) -> Result<void> {
    char* buffer = scratch + piece.thread * piece_bytes;
    auto fetched = target.fetch(piece.offset, buffer, piece.size_bytes);
    if (!fetched) return fetched;
    if (hash_of(buffer, piece.size_bytes) == hashes_[piece.offset / piece_bytes]) return {};
    return wrong_bytes("", piece.offset);
  });
}

Result<void> Fingerprint::check_file(int fd, const std::string& path, std::uint64_t size_bytes,
                                     unsigned threads) const {
  const auto found = read(fd, path, size_bytes, threads);
  if (!found) return found.error();
  const auto [ours, theirs] = std::ranges::mismatch(hashes_, found->hashes_);
  if (theirs == found->hashes_.end()) return {};
  return wrong_bytes(path, static_cast<std::uint64_t>(ours - hashes_.begin()) * piece_bytes);
}

}  // namespace straightway::tools
