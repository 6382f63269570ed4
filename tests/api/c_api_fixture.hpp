#pragma once
// A small file in a directory of its own, for the tests of the C ABI.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "straightway/straightway.h"

template <class T>
T fresh() {
  T sized;
  SW_INIT(&sized);
  return sized;
}

// A directory with a file "data" of 3 pages and 77 bytes, whose byte i is i * 7 % 251.
class CApi : public ::testing::Test {
 protected:
  static constexpr std::size_t file_bytes = 3 * 4096 + 77;

  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "sw_c_api_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    path_ = name + "/data";
    for (std::size_t i = 0; i < file_bytes; ++i) bytes_ += static_cast<char>(i * 7 % 251);
    std::ofstream(path_, std::ios::binary) << bytes_;
    error_ = fresh<sw_error>();
  }
  void TearDown() override {
    sw_file_free(file_);
    std::filesystem::remove_all(directory_);
  }

  void open(const char* mode = "r") {
    ASSERT_EQ(sw_open(nullptr, path_.c_str(), mode, nullptr, &file_, &error_), SW_OK)
        << error_.message;
  }
  std::string contents() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::filesystem::path directory_;
  std::string path_;
  std::string bytes_;
  sw_error error_;
  sw_file* file_ = nullptr;
};
