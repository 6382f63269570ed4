#pragma once
// How the pump's transports are put together, each when the first transfer needs it.

#include <cstdint>
#include <memory>

#include "api/vendor_ways.hpp"
#include "drive/pump.hpp"
#include "memory/space.hpp"
#include "os/syscalls.hpp"
#include "transport/threaded.hpp"

namespace straightway {

// What the pump needs to open them; it outlives the Engine.
struct TransportMaker {
  std::shared_ptr<VendorWays> vendor_ways;
  const os::Syscalls* syscalls;
  std::uint32_t threads;
  std::uint64_t pinned_bytes;
  transport::CopierLimit limit;

  Result<std::unique_ptr<transport::Transport>> operator()(
      const drive::TransportKey& key, const std::shared_ptr<memory::Space>& space,
      transport::Wake& wake) const;
  Result<std::unique_ptr<transport::Transport>> vendor(const drive::TransportKey& key,
                                                       const std::shared_ptr<memory::Space>& space,
                                                       transport::Wake& wake) const;
  transport::Threaded::Make posix() const;
};

}  // namespace straightway
