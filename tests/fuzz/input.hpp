#pragma once
// The bytes of one fuzz input, taken from the front; zeros once they are used up.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace straightway::fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  // Below limit.
  std::size_t pick(std::size_t limit) { return byte() % limit; }
  // Once in `times`; not when the bytes are used up, so that what follows is sound.
  bool seldom(std::uint8_t times) { return byte() % times == times - 1; }
  bool flag() { return (byte() & 1) != 0; }

  // A number as hostile callers write it: small ones, edges of every width, or any bits.
  std::int64_t number() {
    constexpr std::array<std::int64_t, 12> edges = {0,         1,         -1,        4095,
                                                    4096,      65536,     INT32_MAX, INT32_MIN,
                                                    INT64_MAX, INT64_MIN, 1LL << 40, UINT32_MAX};
    const std::uint8_t kind = byte();
    if (kind < 128) return kind;
    if (kind < 192) return edges[kind % edges.size()];
    std::uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | byte();
    return static_cast<std::int64_t>(bits);
  }
  std::string text(std::size_t most) {
    const std::size_t wanted = pick(most + 1);
    const std::size_t size = std::min(wanted, rest_.size());
    std::string found(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return found;
  }

 private:
  std::string_view rest_;
};

// What must hold for any input. Not assert(), which a release build leaves out.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace straightway::fuzz
