#include "cufile/streams.hpp"

namespace straightway::cufile {

abi::Code StreamTable::add(const void* stream, unsigned flags) {
  const std::lock_guard lock(mutex_);
  return flags_.emplace(stream, flags).second ? abi::success : abi::invalid_value;
}

abi::Code StreamTable::remove(const void* stream) {
  const std::lock_guard lock(mutex_);
  return flags_.erase(stream) != 0 ? abi::success : abi::invalid_value;
}

unsigned StreamTable::flags(const void* stream) const {
  const std::lock_guard lock(mutex_);
  const auto found = flags_.find(stream);
  return found == flags_.end() ? 0 : found->second;
}

}  // namespace straightway::cufile
