#pragma once
// Memory of each space under test, filled and read by another way than the transports'.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "straightway/facts.hpp"

namespace straightway::contract {

class TestMemory {
 public:
  virtual ~TestMemory() = default;
  virtual MemoryRange range() const = 0;  // page aligned
  virtual void write(std::span<const std::byte> bytes) = 0;
  virtual std::vector<std::byte> read() const = 0;
};

// Between two pages that fault: a byte too far ends the test.
std::unique_ptr<TestMemory> make_host_memory(std::size_t size_bytes);
// On device 0, by the driver's own synchronous calls. Null where there is no driver: *why says so.
std::unique_ptr<TestMemory> make_cuda_memory(std::size_t size_bytes, std::string* why);

// An address at which no byte may be touched, for as long as the process lives.
std::uint64_t forbidden_address();

}  // namespace straightway::contract
