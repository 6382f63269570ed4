#pragma once
// The file that the demo and the bench read: the user's, or one that they make and remove.

#include <cstdint>
#include <string>

#include "straightway/result.hpp"
#include "terminal.hpp"

namespace straightway::tools {

class SampleFile {
 public:
  // Opens the user's file to look at it.
  static Result<SampleFile> open(const std::string& path);
  // Makes a file of size_bytes in TMPDIR, else /tmp; purpose is a part of its name. Every eight
  // bytes of it are different, so that bytes in the wrong place show.
  static Result<SampleFile> make(const std::string& purpose, std::uint64_t size_bytes,
                                 Terminal& terminal);

  SampleFile(SampleFile&& other) noexcept;
  SampleFile& operator=(SampleFile&&) = delete;
  ~SampleFile();  // removes what was made

  const std::string& path() const { return path_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  bool made() const { return made_; }
  int descriptor() const { return fd_; }
  // By plain pread(); the whole piece or an error.
  Result<void> read_plainly(std::uint64_t offset, void* to, std::size_t size) const;

  // TMPDIR, else /tmp.
  static std::string folder();

 private:
  SampleFile() = default;
  Result<void> write_pattern(std::uint64_t size_bytes, Terminal& terminal);
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_bytes_ = 0;
  bool made_ = false;
};

}  // namespace straightway::tools
