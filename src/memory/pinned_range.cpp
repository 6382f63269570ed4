#include "memory/pinned_range.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "os/facts.hpp"

namespace straightway::memory {
namespace {

constexpr int populate_read = 22;  // MADV_POPULATE_READ, of Linux 5.14
constexpr std::uint64_t fill_step_bytes = std::uint64_t{8} << 20;
constexpr const char* too_many_mappings =
    "pin fewer ranges: each takes two of the process's mappings (vm.max_map_count)";

Error cannot_pin(const FileRange& range, int code, std::string advice) {
  return Error{.kind = code == ENOMEM ? ErrorKind::out_of_memory : ErrorKind::unsupported,
               .origin = ErrorOrigin::system,
               .code = code,
               .attempted = "pin " + std::to_string(range.size_bytes) + " bytes of",
               .path = {},
               .offset = range.offset,
               .why = os::errno_text(code),
               .advice = std::move(advice)};
}

// Behind each mapping lies a gap. Two that touched could become one to the kernel, and a page fault
// at the beginning of the second enter pages at the end of the first, where they would hide a
// change (fault-around). As large as a huge page: newer kernels then align the whole.
constexpr std::uint64_t gap_bytes = std::uint64_t{2} << 20;

void unmap_pages(std::byte* pages, const FileRange& range) {
  if (pages != nullptr) ::munmap(pages, range.size_bytes + gap_bytes);
}

Result<std::byte*> map_pages(int fd, const FileRange& range) {
  const auto whole_bytes = range.size_bytes + gap_bytes;
  void* whole =
      ::mmap(nullptr, whole_bytes, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(range.offset));
  if (whole == MAP_FAILED) return cannot_pin(range, errno, too_many_mappings);
  auto* pages = static_cast<std::byte*>(whole);
  if (::mprotect(pages + range.size_bytes, gap_bytes, PROT_NONE) != 0) {
    const int code = errno;
    unmap_pages(pages, range);
    return cannot_pin(range, code, too_many_mappings);
  }
  ::madvise(whole, whole_bytes, MADV_DONTFORK);
  return pages;
}

}  // namespace

Result<std::unique_ptr<PinnedRange>> PinnedRange::map(int fd, const FileRange& range,
                                                      const os::FileStamp& stamp) {
  std::unique_ptr<PinnedRange> made(new PinnedRange(fd, range, stamp));
  auto pages = map_pages(fd, range);
  if (!pages) return pages.error();
  made->pages_ = *pages;
  return made;
}

// In steps: whoever maps memory meanwhile, the driver included, waits for the one under way.
void PinnedRange::fill(const std::stop_token& stop) {
  for (std::uint64_t at = 0; at < range_.size_bytes; at += fill_step_bytes) {
    if (stop.stop_requested()) return;
    ::madvise(pages_ + at, std::min(fill_step_bytes, range_.size_bytes - at), populate_read);
  }
}

// An O_DIRECT write that began before the stamp and ends while pages are being registered could
// hide: the page faults of the registration map new pages beside old ones that are held already.
// So where a writer may be at work, a second mapping is the witness: full before the first page
// is held, and never touched again.
Result<void> PinnedRange::add_twin() {
  auto twin = map_pages(fd_, range_);
  if (!twin) return twin.error();
  twin_ = *twin;
  if (::madvise(twin_, range_.size_bytes, populate_read) == 0) return {};
  const int code = errno;
  return cannot_pin(range_, code,
                    code == EINVAL ? "pin it while nobody has it open for writing: this kernel "
                                     "is older than 5.14"
                                   : "pin it when it is complete");
}

Result<void> PinnedRange::hold(Space& space, std::int32_t device, bool may_have_writers) {
  if (may_have_writers) {
    if (auto added = add_twin(); !added) return added;
  }
  auto held = space.hold_pages(device, pages_, range_.size_bytes);
  if (!held) return held.error();
  held_ = std::move(*held);
  return {};
}

PinnedRange::~PinnedRange() {
  if (forked()) return;  // MADV_DONTFORK: whatever lies at these addresses is not ours
  held_.reset();
  unmap_pages(twin_, range_);
  unmap_pages(pages_, range_);
}

}  // namespace straightway::memory
