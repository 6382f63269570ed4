#pragma once
// The file that the demo reads: the user's, or one that it makes and removes.

#include <cstdint>
#include <string>

#include "straightway/result.hpp"
#include "terminal.hpp"

namespace straightway::tools {

class DemoFile {
 public:
  // Opens the user's file to look at it.
  static Result<DemoFile> open(const std::string& path);
  // Makes a file of size_bytes in TMPDIR, else /tmp. Every eight bytes of it are different, so that
  // bytes in the wrong place show.
  static Result<DemoFile> make(std::uint64_t size_bytes, Terminal& terminal);

  DemoFile(DemoFile&& other) noexcept;
  DemoFile& operator=(DemoFile&&) = delete;
  ~DemoFile();  // removes what was made

  const std::string& path() const { return path_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  bool made() const { return made_; }
  // By plain pread(); the whole piece or an error.
  Result<void> read_plainly(std::uint64_t offset, void* to, std::size_t size) const;

 private:
  DemoFile() = default;
  Result<void> write_pattern(std::uint64_t size_bytes, Terminal& terminal);
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_bytes_ = 0;
  bool made_ = false;
};

}  // namespace straightway::tools
