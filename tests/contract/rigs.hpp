#pragma once
// What the contract suite runs over: each transport, put together as a Context would, with memory
// of its space.

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "straightway/result.hpp"
#include "tests/contract/memories.hpp"
#include "transport/transport.hpp"
#include "transport/wake.hpp"

namespace straightway::contract {

struct Rig {
  std::unique_ptr<transport::Wake> wake;            // outlives the transport
  std::unique_ptr<transport::Transport> transport;  // destroyed first
};

struct RigKind {
  std::string name;
  std::function<Result<Rig>()> make;
  std::function<std::unique_ptr<TestMemory>(std::size_t size_bytes)> memory = make_host_memory;
  bool moves_bytes = true;    // the null transport does not
  bool whole_file = true;     // serves what lies behind the end, and O_DIRECT (pinned pages do not)
  bool reports_fault = true;  // a bad address completes with an error (else it is not to be tried)
};

inline std::ostream& operator<<(std::ostream& to, const RigKind& kind) { return to << kind.name; }

// Every transport of a space: "host" or "cuda".
std::vector<RigKind> rigs_of(const std::string& space);

}  // namespace straightway::contract
