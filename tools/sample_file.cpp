#include "sample_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "interrupt.hpp"
#include "os/facts.hpp"

namespace straightway::tools {
namespace {

constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 20;

// A different word for every index (a bijection, by splitmix64's mixing steps).
std::uint64_t pattern_word(std::uint64_t index) {
  std::uint64_t word = index * 0x9E3779B97F4A7C15;
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
  return word ^ (word >> 31);
}

int write_all(int fd, const char* from, std::size_t size) {
  while (size > 0) {
    const ssize_t wrote = ::write(fd, from, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return wrote < 0 ? errno : EIO;
    from += wrote;
    size -= static_cast<std::size_t>(wrote);
  }
  return 0;
}

}  // namespace

std::string SampleFile::folder() {
  const char* folder = ::secure_getenv("TMPDIR");
  return folder == nullptr || *folder == '\0' ? "/tmp" : folder;
}

SampleFile::SampleFile(SampleFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_bytes_(other.size_bytes_),
      made_(std::exchange(other.made_, false)) {}

SampleFile::~SampleFile() {
  if (fd_ >= 0) ::close(fd_);
  if (made_) ::unlink(path_.c_str());
}

Result<SampleFile> SampleFile::open(const std::string& path) {
  SampleFile file;
  file.path_ = path;
  file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file.fd_ < 0) return system_error(errno, "open", path);
  const auto size = os::file_size(file.fd_, path);
  if (!size) return size.error();
  file.size_bytes_ = *size;
  return file;
}

Result<SampleFile> SampleFile::make(const std::string& purpose, std::uint64_t size_bytes,
                                    Terminal& terminal) {
  SampleFile file;
  file.path_ = folder() + "/straightway-" + purpose + "-XXXXXX";
  file.fd_ = ::mkostemp(file.path_.data(), O_CLOEXEC);
  if (file.fd_ < 0) return system_error(errno, "make a file", file.path_);
  file.made_ = true;
  if (auto written = file.write_pattern(size_bytes, terminal); !written) return written.error();
  return file;
}

Result<void> SampleFile::write_pattern(std::uint64_t size_bytes, Terminal& terminal) {
  ProgressLine progress(terminal, "making the file", size_bytes);
  std::vector<std::uint64_t> words(piece_bytes / sizeof(std::uint64_t));
  while (size_bytes_ < size_bytes) {
    if (interrupted() != 0) {
      return interrupted_error("make the file");
    }
    std::uint64_t index = size_bytes_ / sizeof(std::uint64_t);
    for (std::uint64_t& word : words) word = pattern_word(index++);
    const std::uint64_t size = std::min(piece_bytes, size_bytes - size_bytes_);
    if (const int code = write_all(fd_, reinterpret_cast<const char*>(words.data()), size)) {
      Error error = system_error(code, "make the file", path_);
      error.advice = "name a smaller --size, or another folder in TMPDIR";
      return error;
    }
    size_bytes_ += size;
    progress.show(size_bytes_);
  }
  return {};
}

Result<void> SampleFile::read_plainly(std::uint64_t offset, void* to, std::size_t size) const {
  char* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = ::pread(fd_, at, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      Error error = system_error(got < 0 ? errno : EIO, "read it back", path_);
      error.offset = offset;
      if (got == 0) error.why = "the file became shorter";
      return error;
    }
    at += got;
    offset += static_cast<std::uint64_t>(got);
    size -= static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace straightway::tools
