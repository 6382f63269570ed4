#pragma once
// The registered streams, with what their programs promised: which arguments hold when the call is
// made. Streams that are not registered work too, with no promise.

#include <mutex>
#include <unordered_map>

#include "cufile/abi.hpp"

namespace straightway::cufile {

inline constexpr unsigned fixed_memory_offset = 1;
inline constexpr unsigned fixed_file_offset = 2;
inline constexpr unsigned fixed_size = 4;

class StreamTable {
 public:
  abi::Code add(const void* stream, unsigned flags);
  abi::Code remove(const void* stream);
  unsigned flags(const void* stream) const;  // 0 where it is not registered

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const void*, unsigned> flags_;
};

}  // namespace straightway::cufile
