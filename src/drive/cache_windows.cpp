#include "drive/cache_windows.hpp"

#include <algorithm>

namespace straightway::drive {

using plan::Residency;

void CacheWindows::begin(const Run& run, int fd, const LookUp& look_up) {
  run_ = run;
  fd_ = fd;
  look_up_ = &look_up;
  end_ = run.file.offset + run.file.size_bytes;
  looked_ = run.file.offset;
  first_ = run.file.offset / steps_.granule_bytes;
  blind_ = false;
  granules_.clear();
}

// The part of it that the run reads.
FileRange CacheWindows::granule(std::uint64_t number) const {
  const auto from = std::max(number * steps_.granule_bytes, run_.file.offset);
  return {from, std::min((number + 1) * steps_.granule_bytes, end_) - from};
}

Residency CacheWindows::ask(const FileRange& range) {
  const auto look = blind_ ? plan::Look{} : (*look_up_)(fd_, range);
  if (!look.known) {
    blind_ = true;
    found_.unknown_bytes += range.size_bytes;
    return Residency::unknown;
  }
  const auto hot = std::min(look.resident_bytes, range.size_bytes);
  found_.hot_bytes += hot;
  found_.cold_bytes += range.size_bytes - hot;
  return plan::residency_of(look, range.size_bytes);
}

// One look where the whole window is in one state, which is the rule; else one for each granule.
void CacheWindows::look_further() {
  const auto window_end = std::min((looked_ / steps_.window_bytes + 1) * steps_.window_bytes, end_);
  const FileRange window{looked_, window_end - looked_};
  const auto before = found_;
  const auto whole = ask(window);
  const auto last = (window_end - 1) / steps_.granule_bytes;
  if (whole == Residency::partly && last > looked_ / steps_.granule_bytes) {
    found_ = before;
    look_granules(window);
  } else {
    granules_.resize(last + 1 - first_, whole);
  }
  looked_ = window_end;
}

void CacheWindows::look_granules(const FileRange& window) {
  const auto last = (window.offset + window.size_bytes - 1) / steps_.granule_bytes;
  for (auto number = window.offset / steps_.granule_bytes; number <= last; ++number) {
    granules_.push_back(ask(granule(number)));
  }
}

void CacheWindows::pass(std::uint64_t offset) {
  const auto number = offset / steps_.granule_bytes;
  while (first_ < number && !granules_.empty()) {
    granules_.pop_front();
    ++first_;
  }
}

Residency CacheWindows::at(std::uint64_t offset) {
  while (looked_ <= offset && looked_ < end_) look_further();
  pass(offset);
  return granules_.empty() ? Residency::unknown : granules_.front();
}

}  // namespace straightway::drive
