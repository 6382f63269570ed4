#pragma once
// A stretch of a file whose page-cache pages are registered with the driver, and how it is told
// that they still are the file's pages.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>

#include "memory/space.hpp"
#include "os/file_stamp.hpp"
#include "os/page_presence.hpp"
#include "straightway/facts.hpp"

namespace straightway::memory {

class PinnedRange {
 public:
  // Maps it; nothing is held yet. range: whole pages (the file's last one may be partial). stamp:
  // settled, read from fd before. fd stays open until hold() is done. The CPU never touches the
  // mapping, so a file that shrinks raises no signal.
  static Result<std::unique_ptr<PinnedRange>> map(int fd, const FileRange& range,
                                                  const os::FileStamp& stamp);
  // Enters the pages into the page table, until it is asked to stop. It only saves hold() time, and
  // is over before that begins; any thread.
  void fill(const std::stop_token& stop = {});
  // Registers the pages. Once. may_have_writers: unless has_no_writers() was true after the stamp
  // was read.
  Result<void> hold(Space& space, std::int32_t device, bool may_have_writers);
  ~PinnedRange();
  PinnedRange(const PinnedRange&) = delete;
  PinnedRange& operator=(const PinnedRange&) = delete;

  const FileRange& range() const { return range_; }
  const os::FileStamp& stamp() const { return stamp_; }
  // The mapping at an absolute file offset within the range: for the device alone.
  std::byte* at(std::uint64_t offset) const { return pages_ + (offset - range_.offset); }
  // Whether no page of this part was replaced or taken from the file since.
  bool all_present(const os::PagePresence& presence, const FileRange& part) const {
    return presence.all_present(witness() + (part.offset - range_.offset), part.size_bytes);
  }
  // Once hold() was done: whether the driver still knows them.
  bool held() const { return held_->held(); }
  bool forked() const { return held_ && held_->forked(); }

 private:
  PinnedRange(int fd, const FileRange& range, const os::FileStamp& stamp)
      : fd_(fd), range_(range), stamp_(stamp) {}
  Result<void> add_twin();
  const std::byte* witness() const { return twin_ != nullptr ? twin_ : pages_; }

  const int fd_;
  const FileRange range_;
  const os::FileStamp stamp_;
  std::byte* pages_ = nullptr;
  std::byte* twin_ = nullptr;
  std::unique_ptr<HeldPages> held_;
};

}  // namespace straightway::memory
