#pragma once
// What the page cache has of the run that is being read: looked up a window at a time, and
// remembered until the position is there (by then the kernel's readahead may have made it hot).

#include <cstdint>
#include <deque>
#include <functional>

#include "plan/cold.hpp"
#include "straightway/plan.hpp"

namespace straightway::drive {

// How many bytes of a file's range are in the page cache. Must not block.
using LookUp = std::function<plan::Look(int fd, const FileRange& range)>;

class CacheWindows {
 public:
  explicit CacheWindows(const plan::CacheSteps& steps = {}) : steps_(steps) {}
  // Of a run that has a ColdWay; forgets the one before. look_up outlives it.
  void begin(const Run& run, int fd, const LookUp& look_up);

  // Of the granule of this offset; offsets do not go back.
  plan::Residency at(std::uint64_t offset);
  // Over all runs, at the time of each look.
  const CacheFound& found() const { return found_; }

 private:
  void look_further();
  void look_granules(const FileRange& window);
  plan::Residency ask(const FileRange& range);
  void pass(std::uint64_t offset);
  FileRange granule(std::uint64_t number) const;

  plan::CacheSteps steps_;
  Run run_;
  int fd_ = -1;
  const LookUp* look_up_ = nullptr;
  std::uint64_t end_ = 0;     // of the run
  std::uint64_t looked_ = 0;  // up to here
  std::uint64_t first_ = 0;   // granule number of the front of granules_
  bool blind_ = false;        // a look was refused: none of this run will say more
  std::deque<plan::Residency> granules_;
  CacheFound found_;
};

}  // namespace straightway::drive
