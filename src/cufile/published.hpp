#pragma once
// What the statistics count in: one block of shared memory that other programs of the same user may
// read (`straightway stats --format gds_stats`). Every counter is an aligned word, changed by one
// atomic operation. Any change of the layout raises published_version.

#include <array>
#include <cstdint>
#include <string_view>

#include "cufile/abi.hpp"

namespace straightway::cufile {

inline constexpr std::string_view published_name = "straightway-cufile-1";
inline constexpr std::string_view published_link_prefix = "/memfd:straightway-cufile-";
inline constexpr std::uint64_t published_magic = 0x4C49'4655'4357'5300;
inline constexpr std::uint64_t published_version = 2;

// What moved in the second that is under way, and in the one before it.
struct Window {
  std::uint64_t second;
  std::uint64_t bytes, operations, busy_us;
  std::uint64_t last_bytes, last_operations, last_busy_us;
};

enum class Flow : std::uint8_t { read, write, readv, writev, batch_read, batch_write };
inline constexpr std::size_t flow_count = 6;

struct Published {
  std::uint64_t magic, version, size_bytes;
  std::int64_t pid;
  std::uint64_t answered_version, level, gpu_count;
  abi::Level1 level1;  // sums and counts; averages and rates are made when they are read
  std::array<std::uint64_t, abi::histogram_size> read_sizes, write_sizes;
  std::array<abi::PerGpu, abi::gpu_limit> gpus;
  std::array<Window, flow_count> flows;
  std::array<std::array<Window, 2>, abi::gpu_limit> gpu_flows;
  std::array<std::uint64_t, abi::gpu_limit> pooled_parts;
};
static_assert(sizeof(Published) % 8 == 0);

}  // namespace straightway::cufile
