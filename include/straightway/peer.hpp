#pragma once
// Peer memory: memory of a PCI device whose pages the kernel publishes (PCI P2PDMA), mapped into
// this process. A drive can read and write it without the CPU's memory in between (route p2pdma).
//
// A Context knows the peer memory that was allocated or adopted with it: files opened with that
// Context find it from the pointer, whole or in part. To other Contexts it looks like host memory.

#include <memory>
#include <string>
#include <string_view>

#include "straightway/file.hpp"

namespace straightway {

namespace memory {
class PeerMapping;
}

class PeerMemory {
 public:
  // Maps size_bytes (rounded up to pages) of what the device's driver lends to programs: the file
  // /sys/bus/pci/devices/<pci_device>/p2pmem/allocate, which belongs to root. Not of a GPU: there
  // the driver hands out memory that nobody allocated, so the vendor's own allocation is adopted.
  static Result<PeerMemory> allocate(std::string_view pci_device, std::size_t size_bytes,
                                     const std::shared_ptr<Context>& context = nullptr);
  // Makes a mapping of the caller's known, who keeps it until this object is gone and nothing uses
  // it any more. pci_device: the device whose published pages these are; empty where it is a
  // mapping of p2pmem/allocate, which names its device.
  static Result<PeerMemory> adopt(Memory memory, std::string_view pci_device = {},
                                  const std::shared_ptr<Context>& context = nullptr);

  PeerMemory() = default;  // none
  PeerMemory(PeerMemory&& other) noexcept;
  PeerMemory& operator=(PeerMemory&& other) noexcept;
  // New transfers do not find it any more. What was allocated is unmapped when the last transfer
  // that uses it is drained.
  ~PeerMemory();

  Memory memory() const;
  const std::string& device() const;  // PCI address

 private:
  PeerMemory(std::shared_ptr<Engine> engine, std::shared_ptr<const memory::PeerMapping> mapping);
  void forget();
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<const memory::PeerMapping> mapping_;
};

}  // namespace straightway
