#pragma once
// One block between a drive and peer memory, with poisoned data, compared on the device's side.

#include <cstdint>

#include "os/syscalls.hpp"
#include "straightway/facts.hpp"
#include "transport/transport.hpp"

namespace straightway {

struct TrialOutcome {
  PeerTrial trial = PeerTrial::impossible;
  std::int32_t code = 0;  // errno where it was refused
};

// block: whole direct-I/O blocks of the file, at most 64 KiB, where the file has bytes; address:
// where they go in peer memory. The memory is afterwards as before.
TrialOutcome try_peer_read(const os::Syscalls& syscalls, const transport::FileRef& file,
                           const FileRange& block, std::uint64_t address);
// Writes what the memory holds over the block, which is afterwards either that or as before.
TrialOutcome try_peer_write(const os::Syscalls& syscalls, const transport::FileRef& file,
                            const FileRange& block, std::uint64_t address);

}  // namespace straightway
