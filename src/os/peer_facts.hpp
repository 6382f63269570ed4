#pragma once
// The way between a file's storage and a PCI device whose memory the kernel publishes (P2PDMA),
// from /sys and /proc. root is a prefix for both in tests ("" in life).

#include <cstdint>
#include <string>
#include <string_view>

#include "straightway/facts.hpp"
#include "straightway/result.hpp"

namespace straightway::os {

// Which storage a descriptor lies on. Numbers of mounts come again, where the kernel has no unique
// ones (before 6.8).
struct FileStorage {
  std::uint64_t device = 0;  // st_dev; of a block device, its own number
  std::uint64_t mount = 0;
  bool operator==(const FileStorage&) const = default;
};
FileStorage file_storage(int fd);

// Everything but the trials. filesystem: FileFacts::filesystem.
PeerFacts read_peer_facts(const FileStorage& storage, const std::string& filesystem,
                          const std::string& pci_device, const std::string& root = "");

// "0000:02:00.0"
bool is_pci_address(std::string_view text);
// Where the devices of the PCI bus stand in /sys.
std::string pci_folder(const std::string& pci_device, const std::string& root);
bool publishes_memory(const std::string& pci_device, const std::string& root);

// The PCI device whose p2pmem/allocate is mapped at address, size_bytes of it at least.
Result<std::string> device_of_mapping(std::uint64_t address, std::uint64_t size_bytes,
                                      const std::string& root = "");

}  // namespace straightway::os
