#pragma once
// Plans the ranges of one call, each from its own Request. What they share (facts of file, machine
// and memory) is looked up once.

#include <memory>
#include <optional>
#include <string>

#include "api/call.hpp"

namespace straightway {

// An argument of the call that cannot be meant.
Error argument_error(Direction direction, const CallRange& range, std::string why,
                     std::string advice);
// Whether a file of any size could hold the range.
bool fits_a_file(const FileRange& range);

class Planning {
 public:
  // known: memory that was resolved before (or does not exist yet); null: each range's is found
  // from its pointer. spare_memory_bytes: for the page cache, of which each range takes its share.
  Planning(Direction direction, std::shared_ptr<const Settings> settings,
           const MemoryRange* known = nullptr, std::uint64_t spare_memory_bytes = UINT64_MAX);

  // Looks once at the memory in which all of the call's ranges lie.
  Result<void> look_at_memory(const CallRange& all);
  // Checks the range against the file's mode and the memory, and plans it.
  Result<Plan> plan(const CallRange& range);
  // Facts may have changed: those that follow are looked up again.
  void forget_facts() { file_ = nullptr; }
  // Of the file of the range last planned, where that is a regular one and the memory a peer's.
  const os::FileStamp& stamp() const { return stamp_; }

 private:
  Result<MemoryRange> find_memory(const CallRange& range);
  Result<MemoryRange> memory_of(const CallRange& range);
  bool needs_file_size(const CallRange& range) const;
  Result<std::uint64_t> file_size(const CallRange& range);
  const plan::Facts& facts_of(const CallRange& range, SpaceKind space);

  const Direction direction_;
  const std::shared_ptr<const Settings> settings_;
  const MemoryRange* const known_;
  std::uint64_t spare_memory_bytes_;
  MemoryRange piece_;               // one piece of memory, which the driver was asked about
  MemoryRange readable_;            // of host memory, for a write
  const OpenFile* file_ = nullptr;  // with space_: what facts_ are of; null: of none
  SpaceKind space_ = SpaceKind::host;
  plan::Facts facts_;
  const OpenFile* sized_file_ = nullptr;
  std::uint64_t file_size_bytes_ = 0;
  bool is_stamped_ = false;  // it is of sized_file_
  os::FileStamp stamp_;
};

}  // namespace straightway
