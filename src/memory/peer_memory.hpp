#pragma once
// Mappings of published device memory, and which of them a pointer lies in.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "straightway/result.hpp"

namespace straightway::memory {

// A stretch of a PCI device's memory in this process. What was mapped here is unmapped with it, so
// whoever starts a transfer keeps it.
class PeerMapping {
 public:
  // Maps p2pmem/allocate of the device.
  static Result<std::shared_ptr<const PeerMapping>> allocate(const std::string& pci_device,
                                                             std::uint64_t size_bytes,
                                                             const std::string& root = "");
  // The caller's. address 0: memory that does not exist yet, for a plan made ahead.
  PeerMapping(std::string pci_device, std::uint64_t address, std::uint64_t size_bytes)
      : device_(std::move(pci_device)), address_(address), size_bytes_(size_bytes) {}
  ~PeerMapping();
  PeerMapping(const PeerMapping&) = delete;
  PeerMapping& operator=(const PeerMapping&) = delete;

  const std::string& device() const { return device_; }
  std::uint64_t address() const { return address_; }
  std::uint64_t size_bytes() const { return size_bytes_; }

 private:
  std::string device_;
  std::uint64_t address_ = 0;
  std::uint64_t size_bytes_ = 0;
  int owner_ = 0;  // the process that mapped it; 0: the caller did
};

// Those that a Context knows. Any thread may call anything at any time.
class PeerMappings {
 public:
  // An error where it overlaps one that is known.
  Result<void> add(std::shared_ptr<const PeerMapping> mapping);
  void remove(const PeerMapping* mapping);
  // The one that the address lies in, or null; an error where fewer than size_bytes are left of it.
  Result<std::shared_ptr<const PeerMapping>> find(std::uint64_t address,
                                                  std::uint64_t size_bytes) const;

 private:
  mutable std::mutex mutex_;
  std::atomic<std::size_t> count_{0};  // so that those who have none look at nothing else
  std::vector<std::shared_ptr<const PeerMapping>> mappings_;
};

}  // namespace straightway::memory
