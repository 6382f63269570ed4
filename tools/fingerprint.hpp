#pragma once
// The hashes of a file's pieces, by plain pread(): what its bytes are compared with wherever they
// went, without reading the file again, which would change what is cached.

#include <cstdint>
#include <string>
#include <vector>

#include "target.hpp"

namespace straightway::tools {

class Fingerprint {
 public:
  static constexpr std::size_t piece_bytes = std::size_t{1} << 20;

  // Of the first size_bytes.
  static Result<Fingerprint> read(int fd, const std::string& path, std::uint64_t size_bytes,
                                  unsigned threads);
  // Whether the first size_bytes are there; the error names the first piece that differs.
  // scratch: threads x piece_bytes. size_bytes: whole pieces, or all of it.
  Result<void> check(const Target& target, std::uint64_t size_bytes, char* scratch,
                     unsigned threads) const;
  Result<void> check_file(int fd, const std::string& path, std::uint64_t size_bytes,
                          unsigned threads) const;

 private:
  std::vector<std::uint64_t> hashes_;
};

// What to say of bytes that are not those of the file.
Error wrong_bytes(const std::string& path, std::uint64_t offset);

}  // namespace straightway::tools
