#pragma once
// Whether all pages of a mapping are still mapped, asked of the page tables without touching them.
//
// A page of a file that leaves the page cache (truncation, a hole, O_DIRECT of somebody) is
// unmapped first, everywhere. So a mapping that was full and is never touched again tells for ever
// that a page of the file was replaced.

#include <atomic>
#include <cstddef>

#include "os/descriptor.hpp"
#include "straightway/result.hpp"

namespace straightway::os {

class PagePresence {
 public:
  // Of this process. An error where the kernel does not tell.
  static Result<PagePresence> open();

  PagePresence() = default;
  PagePresence(PagePresence&& other) noexcept
      : pagemap_(std::move(other.pagemap_)), can_scan_(other.can_scan_.load()) {}
  PagePresence& operator=(PagePresence&& other) noexcept {
    pagemap_ = std::move(other.pagemap_);
    can_scan_ = other.can_scan_.load();
    return *this;
  }

  // Any thread. False when a page is missing, or when it cannot be seen.
  bool all_present(const void* address, std::size_t size_bytes) const;
  // For tests: as on Linux before 6.7.
  void forget_scan() { can_scan_ = false; }

 private:
  enum class Seen { present, moving, absent };
  Seen look(std::size_t begin, std::size_t end) const;
  Seen scan(std::size_t begin, std::size_t end) const;
  Seen read(std::size_t begin, std::size_t end) const;

  Descriptor pagemap_;
  mutable std::atomic<bool> can_scan_{true};
};

}  // namespace straightway::os
