#include "cufile/buffers.hpp"

#include <mutex>

namespace straightway::cufile {
namespace {

std::uint64_t key_of(const void* base) { return reinterpret_cast<std::uintptr_t>(base); }

}  // namespace

abi::Code BufferTable::add(const MemoryRange& memory, std::uint64_t limit_bytes) {
  const std::unique_lock lock(mutex_);
  if (by_base_.contains(memory.address)) return abi::memory_already_registered;
  if (memory.space == SpaceKind::cuda) {
    if (device_bytes_ > limit_bytes || memory.size_bytes > limit_bytes - device_bytes_) {
      return abi::invalid_mapping_size;
    }
    device_bytes_ += memory.size_bytes;
  }
  by_base_.emplace(memory.address, memory);
  return abi::success;
}

std::optional<MemoryRange> BufferTable::remove(const void* base) {
  const std::unique_lock lock(mutex_);
  const auto found = by_base_.find(key_of(base));
  if (found == by_base_.end()) return std::nullopt;
  const MemoryRange memory = found->second;
  if (memory.space == SpaceKind::cuda) device_bytes_ -= memory.size_bytes;
  by_base_.erase(found);
  return memory;
}

std::optional<MemoryRange> BufferTable::find(const void* base) const {
  const std::shared_lock lock(mutex_);
  const auto found = by_base_.find(key_of(base));
  if (found == by_base_.end()) return std::nullopt;
  return found->second;
}

std::size_t BufferTable::size() const {
  const std::shared_lock lock(mutex_);
  return by_base_.size();
}

}  // namespace straightway::cufile
