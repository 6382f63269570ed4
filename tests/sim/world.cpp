#include "tests/sim/world.hpp"

namespace straightway::sim {

std::uint8_t file_byte(std::uint32_t file, std::uint64_t i) {
  std::uint64_t mixed = (i + 1) * 0x9E3779B97F4A7C15ULL + file;
  mixed ^= mixed >> 29;
  mixed *= 0xBF58476D1CE4E5B9ULL;
  return static_cast<std::uint8_t>(mixed >> 56);
}

void World::broken(const std::string& what) {
  if (violation.empty()) violation = what;
}

void World::note(std::uint64_t event) {
  for (int i = 0; i < 8; ++i) {
    trace = (trace ^ ((event >> (8 * i)) & 0xFF)) * 1099511628211ULL;
  }
}

}  // namespace straightway::sim
