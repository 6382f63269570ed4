#pragma once
// The desks of each device: made when they are needed, kept for the next transfer, bounded by a
// share of the pinned bytes. Any thread may call anything.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "memory/space.hpp"

namespace straightway::memory {

class Desks {
 public:
  // pinned_bytes: the whole budget of a device, of which desks take about a tenth. small and large:
  // the two sizes of desks.
  Desks(std::uint64_t pinned_bytes, std::uint64_t small_bytes, std::uint64_t large_bytes);

  // What the desks of one device pin at most.
  std::uint64_t budget_bytes() const;
  // A desk that holds size_bytes; null where all of them are taken, or the budget has no room. Each
  // goes back by give() for the same size; null after a copy that failed.
  Result<std::unique_ptr<Desk>> take(Space& space, std::int32_t device, std::uint64_t size_bytes);
  void give(std::int32_t device, std::uint64_t size_bytes, std::unique_ptr<Desk> desk);

 private:
  struct Kind {
    std::uint64_t size_bytes = 0;
    std::uint64_t limit = 0;
  };
  struct Shelf {
    std::uint64_t open = 0;
    std::vector<std::unique_ptr<Desk>> free;
  };
  std::size_t kind_of(std::uint64_t size_bytes) const;

  std::array<Kind, 2> kinds_;
  std::mutex mutex_;
  std::map<std::int32_t, std::array<Shelf, 2>> shelves_;  // by device
};

}  // namespace straightway::memory
