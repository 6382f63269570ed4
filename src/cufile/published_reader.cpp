#include "cufile/published_reader.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "cufile/statistics.hpp"
#include "os/shown_memory.hpp"

namespace straightway::cufile {
namespace {

constexpr os::ShownForm form{
    .link_prefix = published_link_prefix,
    .magic = published_magic,
    .version = published_version,
    .size_bytes = sizeof(Published),
    .name = "cuFile statistics",
    .when_none =
        "start it on Straightway's libcufile.so.0 (docs/cufile.md says how); they are there from "
        "its first cuFile call to its last close"};
static_assert(offsetof(Published, pid) == offsetof(os::ShownHeader, pid));

constexpr std::uint64_t highest_level = 3;

template <class Block>
void add_words(Block& sum, const Block& other) {
  auto* to = reinterpret_cast<std::uint64_t*>(&sum);
  const auto* from = reinterpret_cast<const std::uint64_t*>(&other);
  for (std::size_t i = 0; i < sizeof(Block) / 8; ++i) to[i] += from[i];
}

void add(Published& sum, const Published& other) {
  sum.level = std::max(sum.level, other.level);
  sum.gpu_count = std::max(sum.gpu_count, other.gpu_count);
  add_words(sum.level1, other.level1);
  add_words(sum.read_sizes, other.read_sizes);
  add_words(sum.write_sizes, other.write_sizes);
  for (std::size_t i = 0; i < abi::gpu_limit; ++i) {
    // All copies see the same devices; one that has not used them yet has no names for them.
    auto uuid = sum.gpus[i].uuid;
    if (uuid == decltype(uuid){}) uuid = other.gpus[i].uuid;
    add_words(sum.gpus[i], other.gpus[i]);
    sum.gpus[i].uuid = uuid;
    sum.pooled_parts[i] += other.pooled_parts[i];
  }
  fill_averages(sum.level1);
}

}  // namespace

Result<std::unique_ptr<Published>> read_published(std::int64_t pid) {
  std::unique_ptr<Published> sum;
  const auto take = [&](std::span<const std::byte> bytes) {
    auto copy = std::make_unique<Published>();
    std::memcpy(copy.get(), bytes.data(), sizeof(Published));
    if (copy->level > highest_level || copy->gpu_count > abi::gpu_limit) return;
    fill_rates(*copy, this_second());
    if (sum) {
      add(*sum, *copy);
    } else {
      sum = std::move(copy);
    }
  };
  if (auto read = os::read_shown(pid, form, take); !read) return read.error();
  if (sum) return sum;
  return Error{.kind = ErrorKind::wrong_file_type,
               .attempted = "read the statistics of process " + std::to_string(pid),
               .path = {},
               .offset = {},
               .why = "its cuFile statistics have a level or a number of GPUs that cannot be",
               .advice = "that program is not Straightway"};
}

}  // namespace straightway::cufile
