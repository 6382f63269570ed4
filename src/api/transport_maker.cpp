#include "api/transport_maker.hpp"

#include <algorithm>
#include <utility>

#include "plan/effort.hpp"
#include "transport/pinned_cache.hpp"
#include "transport/posix.hpp"
#include "transport/staged.hpp"
#include "transport/uring.hpp"
#include "transport/vendor_cufile.hpp"

namespace straightway {
namespace {

constexpr std::uint32_t uring_depth = 32;
// The ring is pinned in two parts: 16 MiB take 3 ms, all of it 12 to 19 (measured).
constexpr std::uint64_t first_ring_bytes = std::uint64_t{16} << 20;
constexpr std::uint32_t pinning_threads = 4;
static_assert(transport::most_direct_copiers == plan::direct_copiers_limit);

// Pins a ring of the wanted size, or a smaller one where the machine refuses so much.
Result<std::unique_ptr<memory::Pinned>> pin_ring(memory::Space& space, std::int32_t device,
                                                 std::uint64_t size_bytes, std::uint32_t threads) {
  for (auto size = size_bytes;; size /= 2) {
    auto ring = space.pin(device, size, threads);
    if (ring || ring.error().kind != ErrorKind::out_of_memory ||
        size / 2 < transport::staged_piece_bytes) {
      return ring;
    }
  }
}

}  // namespace

transport::Threaded::Make TransportMaker::posix() const {
  return [calls = syscalls] { return std::make_unique<transport::Posix>(*calls, true); };
}

Result<std::unique_ptr<transport::Transport>> TransportMaker::vendor(
    const drive::TransportKey& key, const std::shared_ptr<memory::Space>& space,
    transport::Wake& wake) const {
  auto library = vendor_ways->loaded();
  if (!library) {
    return Error{ErrorKind::unsupported,
                 ErrorOrigin::straightway,
                 0,
                 "use the vendor's cuFile library",
                 "",
                 {},
                 "it is not loaded",
                 "use policy auto"};
  }
  const auto make = [library, space, device = key.device] {
    return std::make_unique<transport::VendorCufile>(library, space, device);
  };
  return std::unique_ptr<transport::Transport>(
      std::make_unique<transport::Threaded>(make, threads, wake));
}

Result<std::unique_ptr<transport::Transport>> TransportMaker::operator()(
    const drive::TransportKey& key, const std::shared_ptr<memory::Space>& space,
    transport::Wake& wake) const {
  if (key.space == SpaceKind::host) {
    if (key.direct_io) {
      if (auto uring = transport::Uring::create(uring_depth, wake)) {
        return std::unique_ptr<transport::Transport>(std::move(*uring));
      }
    }
    return std::unique_ptr<transport::Transport>(std::make_unique<transport::Threaded>(
        posix(), threads, wake, key.direct_io ? nullptr : limit));
  }
  if (key.vendor) return vendor(key, space, wake);
  if (key.pinned_cache) {
    auto lane = space->open_lane(key.device);
    if (!lane) return lane.error();
    return std::unique_ptr<transport::Transport>(
        std::make_unique<transport::PinnedCache>(std::move(*lane)));
  }
  const bool in_parts = pinned_bytes >= 2 * first_ring_bytes;
  auto ring = pin_ring(*space, key.device, in_parts ? first_ring_bytes : pinned_bytes, threads);
  if (!ring) return ring.error();
  transport::Staged::Grow grow;
  if (in_parts && (*ring)->size_bytes() == first_ring_bytes) {
    grow = [space, device = key.device, rest = pinned_bytes - first_ring_bytes,
            helping = std::min(threads, pinning_threads)] {
      return space->pin(device, rest, helping);
    };
  }
  auto lane = space->open_lane(key.device);
  if (!lane) return lane.error();
  return std::unique_ptr<transport::Transport>(std::make_unique<transport::Staged>(
      posix(), threads, std::move(*ring), std::move(*lane), wake, std::move(grow), limit));
}

}  // namespace straightway
