#include "api/vendor_ways.hpp"

#include <algorithm>

namespace straightway {

Result<std::shared_ptr<transport::CufileLibrary>> VendorWays::library(const std::string& path,
                                                                      transport::P2pdmaWish wish) {
  const std::lock_guard lock(loading_mutex_);
  if (!outcome_) outcome_ = transport::CufileLibrary::open(path, wish, root_);
  return *outcome_;
}

std::shared_ptr<transport::CufileLibrary> VendorWays::loaded() {
  const std::lock_guard lock(loading_mutex_);
  return outcome_ && *outcome_ ? **outcome_ : nullptr;
}

VendorWays::Known& VendorWays::way(const os::FileStorage& storage) {
  const auto found = std::find_if(ways_.begin(), ways_.end(),
                                  [&](const Way& each) { return each.storage == storage; });
  if (found != ways_.end()) return found->known;
  ways_.push_back({storage, {}});
  return ways_.back().known;
}

VendorWays::Known VendorWays::known(const os::FileStorage& storage) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(ways_.begin(), ways_.end(),
                                  [&](const Way& each) { return each.storage == storage; });
  return found == ways_.end() ? Known{} : found->known;
}

void VendorWays::learn_refusal(const os::FileStorage& storage, std::int32_t code) {
  const std::lock_guard lock(mutex_);
  auto& known = way(storage);
  if (known.code == 0) known.code = code;
}

void VendorWays::learn_copies(const os::FileStorage& storage) {
  const std::lock_guard lock(mutex_);
  way(storage).copies = true;
}

}  // namespace straightway
