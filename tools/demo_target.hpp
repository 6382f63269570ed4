#pragma once
// The memory that the demo reads into.

#include <memory>
#include <string>

#include "straightway/file.hpp"

namespace straightway::tools {

class DemoTarget {
 public:
  virtual ~DemoTarget() = default;
  virtual Memory memory() const = 0;
  virtual SpaceKind space() const = 0;
  virtual std::string name() const = 0;     // "host memory", "cuda:0 (NVIDIA H200)"
  virtual std::string witness() const = 0;  // how fetch() looks at the bytes
  // Fills it with a byte that is not zero, so that bytes that never came show.
  virtual Result<void> poison() = 0;
  // Bytes of it, by another way than they came.
  virtual Result<void> fetch(std::uint64_t offset, void* to, std::size_t size) const = 0;
};

Result<std::unique_ptr<DemoTarget>> allocate_host(std::size_t size_bytes);
Result<std::unique_ptr<DemoTarget>> allocate_device(int device, std::size_t size_bytes);

}  // namespace straightway::tools
