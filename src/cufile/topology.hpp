#pragma once
// cuFileExportPCIeTopology: the accelerators and network adapters of this machine, as text.

#include <string>

namespace straightway::cufile {

// False where the file cannot be written.
bool export_topology(const std::string& path);
// root: a prefix for /sys, in tests.
std::string topology_text(const std::string& root = "");

}  // namespace straightway::cufile
