#include "memory/desks.hpp"

#include <algorithm>
#include <utility>

namespace straightway::memory {
namespace {

// A desk has a page beside its bytes, which the device writes.
constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t small_desks_limit = 16;
constexpr std::uint64_t small_share = 16;
// One job of a crew at a time.
constexpr std::uint64_t large_desks_limit = 1;
constexpr std::uint64_t large_share = 16;

}  // namespace

Desks::Desks(std::uint64_t pinned_bytes, std::uint64_t small_bytes, std::uint64_t large_bytes)
    : kinds_{{{small_bytes, std::min(small_desks_limit,
                                     pinned_bytes / small_share / (small_bytes + page_bytes))},
              {large_bytes, std::min(large_desks_limit,
                                     pinned_bytes / large_share / (large_bytes + page_bytes))}}} {}

std::uint64_t Desks::budget_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& kind : kinds_) sum += kind.limit * (kind.size_bytes + page_bytes);
  return sum;
}

std::size_t Desks::kind_of(std::uint64_t size_bytes) const {
  return size_bytes <= kinds_[0].size_bytes ? 0 : 1;
}

Result<std::unique_ptr<Desk>> Desks::take(Space& space, std::int32_t device,
                                          std::uint64_t size_bytes) {
  const auto kind = kind_of(size_bytes);
  {
    const std::lock_guard lock(mutex_);
    auto& shelf = shelves_[device][kind];
    if (!shelf.free.empty()) {
      auto desk = std::move(shelf.free.back());
      shelf.free.pop_back();
      return desk;
    }
    if (shelf.open == kinds_[kind].limit) return std::unique_ptr<Desk>();
    ++shelf.open;
  }
  auto desk = space.open_desk(device, kinds_[kind].size_bytes);
  if (!desk) give(device, size_bytes, nullptr);
  return desk;
}

void Desks::give(std::int32_t device, std::uint64_t size_bytes, std::unique_ptr<Desk> desk) {
  const std::lock_guard lock(mutex_);
  auto& shelf = shelves_[device][kind_of(size_bytes)];
  if (desk) {
    shelf.free.push_back(std::move(desk));
  } else {
    --shelf.open;
  }
}

}  // namespace straightway::memory
