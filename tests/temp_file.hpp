#pragma once
// A file with known bytes, in a directory of its own that goes with it.

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace straightway::tests {

// Bytes that differ from their neighbours and from page to page.
inline std::vector<char> pattern(std::size_t size_bytes, std::uint64_t seed = 1) {
  std::vector<char> bytes(size_bytes);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 1;
  for (auto& byte : bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<char>(state >> 32);
  }
  return bytes;
}

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "straightway-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::vector<char>& bytes) const {
    std::ofstream(path(name), std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path(name);
  }
  std::vector<char> read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary | std::ios::ate);
    if (!file) return {};
    std::vector<char> bytes(static_cast<std::size_t>(file.tellg()));
    file.seekg(0).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return bytes;
  }

 private:
  std::string path_;
};

}  // namespace straightway::tests
