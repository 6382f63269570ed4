#pragma once
// The registered buffers. Nothing is pinned for them: registration decides how a request is cut,
// and which range it must stay in.

#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <unordered_map>

#include "cufile/abi.hpp"
#include "straightway/facts.hpp"

namespace straightway::cufile {

class BufferTable {
 public:
  // memory.address is the base. limit_bytes: of all device memory that is registered.
  abi::Code add(const MemoryRange& memory, std::uint64_t limit_bytes);
  // What was registered, or nullopt.
  std::optional<MemoryRange> remove(const void* base);
  std::optional<MemoryRange> find(const void* base) const;
  std::size_t size() const;

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::uint64_t, MemoryRange> by_base_;
  std::uint64_t device_bytes_ = 0;
};

}  // namespace straightway::cufile
