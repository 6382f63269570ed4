#pragma once
// Memory between two strips that nobody may write to.

#include <algorithm>
#include <span>

#include "tests/fuzz/input.hpp"

namespace straightway::fuzz {

class GuardedMemory {
 public:
  static constexpr std::ptrdiff_t strip = 65536;

  // The strips are the first and the last of the bytes, which the caller owns.
  explicit GuardedMemory(std::span<char> bytes) : bytes_(bytes) { std::ranges::fill(bytes_, mark); }
  char* data() { return bytes_.data() + strip; }
  std::size_t size() const { return bytes_.size() - 2 * strip; }
  void check() const {
    const auto is_mark = [](char c) { return c == mark; };
    require(std::all_of(bytes_.begin(), bytes_.begin() + strip, is_mark));
    require(std::all_of(bytes_.end() - strip, bytes_.end(), is_mark));
  }

 private:
  static constexpr char mark = 0x5A;
  std::span<char> bytes_;
};

}  // namespace straightway::fuzz
