#include "straightway/receipt.hpp"

namespace straightway {
namespace {

template <class T>
bool same(const std::shared_ptr<const T>& a, const std::shared_ptr<const T>& b) {
  return a == b || (a && b && *a == *b);
}

bool same_outcome(const Receipt& a, const Receipt& b) {
  return a.moved_bytes == b.moved_bytes && a.ended_early == b.ended_early &&
         a.end_of_file == b.end_of_file && a.routes == b.routes && a.refused == b.refused &&
         a.retries == b.retries && a.fallbacks == b.fallbacks &&
         a.fallback_code == b.fallback_code && a.disk_measured == b.disk_measured &&
         a.disk_bytes == b.disk_bytes && a.found == b.found && a.cold_reason == b.cold_reason &&
         a.threads == b.threads && a.pinned_bytes == b.pinned_bytes && a.pin_bytes == b.pin_bytes &&
         a.times == b.times && a.layer == b.layer;
}

}  // namespace

bool Receipt::operator==(const Receipt& other) const {
  return direction == other.direction && door == other.door && memory == other.memory &&
         file_offset == other.file_offset && wanted_bytes == other.wanted_bytes &&
         same_outcome(*this, other) && same(ranges, other.ranges) && same(file, other.file) &&
         same(machine, other.machine) && same(settings, other.settings) && same(peer, other.peer);
}

}  // namespace straightway
