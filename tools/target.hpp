#pragma once
// The memory that the demo and the bench read into, and page-aligned memory beside it.

#include <memory>
#include <string>

#include "straightway/file.hpp"

namespace straightway::tools {

// Host memory, all of it there; registered with the driver where it serves a GPU.
class Area {
 public:
  virtual ~Area() = default;
  virtual char* data() const = 0;
  virtual std::size_t size_bytes() const = 0;
};

// Thread rule: load() and fetch() may be called from several threads at once.
class Target {
 public:
  virtual ~Target() = default;
  virtual Memory memory() const = 0;
  virtual SpaceKind space() const = 0;
  virtual std::string name() const = 0;     // "host memory", "cuda:0 (NVIDIA H200)"
  virtual std::string driver() const = 0;   // "CUDA 13.0"; empty for host memory
  virtual std::string witness() const = 0;  // how fetch() looks at the bytes
  // Fills it with a byte that is not zero, so that bytes that never came show.
  virtual Result<void> poison() = 0;
  // Bytes of it, by another way than they came.
  virtual Result<void> fetch(std::uint64_t offset, void* to, std::size_t size) const = 0;
  // Puts bytes there, by another way than the library's.
  virtual Result<void> load(std::uint64_t offset, const void* from, std::size_t size) = 0;
  virtual Result<std::unique_ptr<Area>> make_area(std::size_t size_bytes) const = 0;
};

Result<std::unique_ptr<Target>> allocate_host(std::size_t size_bytes);
Result<std::unique_ptr<Target>> allocate_device(int device, std::size_t size_bytes);

}  // namespace straightway::tools
