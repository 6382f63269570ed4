#pragma once
// What stands in the way of storage DMA into GPU memory, prerequisite by prerequisite: each with
// the fact, where it was read, and one fix. Sources of the rules: the kernel (pci/p2pdma.c, the
// block layer's BLK_FEAT_PCI_P2PDMA), the vendor's troubleshooting guides, and measured boots of
// Linux 6.17 to 7.3.

#include <optional>

#include "findings.hpp"
#include "machine_tree.hpp"
#include "straightway/facts.hpp"

namespace straightway::tools {

struct Looked {
  MachineTree tree;
  MachineFacts machine;
  std::vector<PciDevice> gpus;        // NVIDIA's
  std::optional<StoragePlace> place;  // of the file; none: the machine alone
  // What O_DIRECT asks of file offsets; 0: it does not work. Nullopt: not to be seen here.
  std::optional<std::uint32_t> direct_align_bytes;
};

// The prerequisites of nvfs or p2pdma.
Section direct_way(Route route, const Looked& looked);

std::optional<std::uint64_t> bar1_bytes(const MachineTree& tree, const PciDevice& gpu);

// Parts of it, by what they look at.
void add_gpu_findings(Route route, const Looked& looked, std::vector<Finding>& add);
void add_path_findings(const Looked& looked, std::vector<Finding>& add);
void add_storage_findings(Route route, const Looked& looked, std::vector<Finding>& add);

}  // namespace straightway::tools
