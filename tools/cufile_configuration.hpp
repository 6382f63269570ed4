#pragma once
// cufile.json as our own libcufile.so.0 reads it on a machine: where the library looks, and what is
// in force then.

#include "cufile/configuration.hpp"
#include "findings.hpp"
#include "machine_tree.hpp"

namespace straightway::tools {

// Variables count on this machine alone.
Result<cufile::Configuration> read_cufile_configuration(const MachineTree& tree);

// The file in force, and every value that is not taken or takes no effect, with its reason.
Section configuration_section(const MachineTree& tree);

}  // namespace straightway::tools
