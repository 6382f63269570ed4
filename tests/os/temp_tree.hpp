#pragma once
// A temporary folder that removes itself, to stand for / in tests.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace straightway::os {

class TempTree {
 public:
  TempTree() {
    std::string pattern = (std::filesystem::temp_directory_path() / "straightway-os-XXXXXX");
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    root_ = pattern;
  }
  ~TempTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;

  const std::string& root() const { return root_; }

  // Writes root/path, with the folders above it, and returns its full name.
  std::string write(const std::string& path, std::string_view text) const {
    const std::filesystem::path full = root_ + "/" + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full, std::ios::binary) << text;
    return full;
  }
  std::string folder(const std::string& path) const {
    std::filesystem::create_directories(root_ + "/" + path);
    return root_ + "/" + path;
  }
  std::string link(const std::string& path, const std::string& target) const {
    const std::filesystem::path full = root_ + "/" + path;
    std::filesystem::create_directories(full.parent_path());
    std::filesystem::create_symlink(target, full);
    return full;
  }

 private:
  std::string root_;
};

}  // namespace straightway::os
