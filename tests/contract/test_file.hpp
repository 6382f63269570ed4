#pragma once
// A file of random bytes in a directory of its own, open for buffered and, where the file system
// has it, direct I/O.

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "transport/transport.hpp"

namespace straightway::contract {

// == compares std::byte one by one, which takes minutes under a sanitizer.
inline bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

inline std::vector<std::byte> random_bytes(std::size_t size_bytes, std::uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(size_bytes);
  for (std::size_t i = 0; i < size_bytes; i += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + i, &word, std::min(sizeof word, size_bytes - i));
  }
  return bytes;
}

class TestFile {
 public:
  explicit TestFile(std::vector<std::byte> bytes) {
    std::string name = (std::filesystem::temp_directory_path() / "sw_contract_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    directory_ = name;
    path_ = name + "/data";
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    for (std::size_t done = 0; done < bytes.size();) {
      const auto count =
          ::pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      if (count <= 0) throw std::runtime_error("cannot write " + path_);
      done += static_cast<std::size_t>(count);
    }
    ::fsync(fd_);
    direct_fd_ = ::open(path_.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
  }
  TestFile(const TestFile&) = delete;
  TestFile& operator=(const TestFile&) = delete;
  ~TestFile() {
    ::close(fd_);
    if (direct_fd_ >= 0) ::close(direct_fd_);
    std::filesystem::remove_all(directory_);
  }

  const std::string& path() const { return path_; }
  bool has_direct() const { return direct_fd_ >= 0; }
  transport::FileRef ref() const { return {fd_, direct_fd_}; }
  std::vector<std::byte> contents() const {
    struct stat status{};
    ::fstat(fd_, &status);
    std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
    for (std::size_t done = 0; done < bytes.size();) {
      const auto count =
          ::pread(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      if (count <= 0) throw std::runtime_error("cannot read " + path_);
      done += static_cast<std::size_t>(count);
    }
    return bytes;
  }

 private:
  std::filesystem::path directory_;
  std::string path_;
  int fd_ = -1;
  int direct_fd_ = -1;
};

}  // namespace straightway::contract
