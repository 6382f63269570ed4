#pragma once
// What a Context knows of the ways between files and peer memory, and how a way is tried: one
// block, once per storage and memory device, before anything else goes there.

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "os/file_stamp.hpp"
#include "os/peer_facts.hpp"
#include "os/syscalls.hpp"
#include "straightway/plan.hpp"
#include "straightway/result.hpp"
#include "transport/transport.hpp"

namespace straightway {

struct OpenFile;

// Any thread may call anything at any time.
class PeerWays {
 public:
  // root: a prefix for /sys and /proc in tests.
  explicit PeerWays(std::string root) : root_(std::move(root)) {}

  // Looked up once per storage and memory device; never tries anything.
  std::shared_ptr<const PeerFacts> facts(const os::FileStorage& storage,
                                         const std::string& filesystem,
                                         const std::string& pci_device);
  // Tries the way with the first block of the plan's p2pdma run, unless it was tried before. The
  // facts afterwards; trials that said nothing for good are in them, and not remembered. Memory and
  // file are as before, but for blocks that the request writes anyway.
  std::shared_ptr<const PeerFacts> attempt(const Plan& plan, const os::FileStorage& storage,
                                           const transport::FileRef& file,
                                           const os::Syscalls& syscalls);
  // Whether a stretch of a regular file has holes or blocks that were never written: they come as
  // zeros from the CPU, under O_DIRECT too. stamp: read from it before. Asks the file system,
  // but not again for what has none as long as the stamp stays; what it does not tell may have
  // some. direct_fd: whose position is nobody else's.
  bool has_holes(const os::FileStamp& stamp, int direct_fd, const FileRange& range);
  // A transfer met a refusal after all.
  void learn_refusal(const os::FileStorage& storage, const std::string& pci_device,
                     Direction direction, std::int32_t code);

 private:
  struct Way {
    os::FileStorage storage;
    std::shared_ptr<const PeerFacts> facts;
  };
  Way* find(const os::FileStorage& storage, const std::string& pci_device);
  // A stretch of a file without holes; size 0: none is known.
  struct Filled {
    os::FileStamp stamp;
    FileRange range;
  };
  Filled& filled_of(const os::FileStamp& stamp) { return filled_[stamp.inode % filled_.size()]; }

  const std::string root_;
  std::mutex trial_mutex_;  // held while one is under way: the others wait for its outcome
  std::mutex mutex_;
  std::vector<Way> ways_;
  std::array<Filled, 64> filled_;  // by inode; files that meet in one take turns
};

// The p2pdma run of a plan, or null.
const Run* peer_run(const Plan& plan);

}  // namespace straightway
