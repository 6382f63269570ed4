#include "tests/contract/rigs.hpp"

#include <utility>

#include "examples/porting/skeleton_transport.hpp"
#include "memory/cuda_space.hpp"
#include "os/syscalls.hpp"
#include "tests/contract/slow_lane.hpp"
#include "transport/null.hpp"
#include "transport/posix.hpp"
#include "transport/staged.hpp"
#include "transport/threaded.hpp"
#include "transport/uring.hpp"

namespace straightway::contract {
namespace {

using transport::Transport;
using transport::Wake;

constexpr std::uint32_t worker_threads = 3;
constexpr std::uint32_t ring_depth = 16;
constexpr std::size_t staged_slots = 5;  // few, so that they are used again and again
constexpr std::size_t pinned_bytes = staged_slots * transport::staged_piece_bytes;

using HostMaker = std::function<Result<std::unique_ptr<Transport>>(Wake&)>;

std::unique_ptr<Transport> posix() { return std::make_unique<transport::Posix>(os::kernel()); }

Result<std::unique_ptr<Transport>> make_posix(Wake& /*wake*/) { return posix(); }

Result<std::unique_ptr<Transport>> make_threaded(Wake& wake) {
  return std::unique_ptr<Transport>(
      std::make_unique<transport::Threaded>(posix, worker_threads, wake));
}

Result<std::unique_ptr<Transport>> make_uring(Wake& wake) {
  auto uring = transport::Uring::create(ring_depth, wake);
  if (!uring) return uring.error();
  return std::unique_ptr<Transport>(std::move(*uring));
}

Result<std::unique_ptr<Transport>> make_null(Wake& /*wake*/) {
  return std::unique_ptr<Transport>(std::make_unique<transport::Null>());
}

Result<std::unique_ptr<Transport>> make_skeleton(Wake& wake) {
  return std::unique_ptr<Transport>(std::make_unique<examples::SkeletonTransport>(wake));
}

// The rig of a transport alone.
std::function<Result<Rig>()> alone(HostMaker make) {
  return [make]() -> Result<Rig> {
    auto wake = Wake::create();
    if (!wake) return wake.error();
    auto transport = make(**wake);
    if (!transport) return transport.error();
    return Rig{std::move(*wake), std::move(*transport)};
  };
}

// Staged, with the space's pinned memory and lane.
struct DeviceSide {
  std::unique_ptr<memory::Pinned> pinned;
  std::unique_ptr<memory::Lane> lane;
};
using DeviceMaker = std::function<Result<DeviceSide>()>;

std::function<Result<Rig>()> staged(std::uint32_t copiers, DeviceMaker device) {
  return alone([copiers, device](Wake& wake) -> Result<std::unique_ptr<Transport>> {
    auto side = device();
    if (!side) return side.error();
    return std::unique_ptr<Transport>(std::make_unique<transport::Staged>(
        posix, copiers, std::move(side->pinned), std::move(side->lane), wake));
  });
}

Result<DeviceSide> slow_lane() {
  return DeviceSide{std::make_unique<MappedPinned>(pinned_bytes), std::make_unique<SlowLane>(1)};
}

Result<DeviceSide> cuda_lane() {
  static const memory::Cuda cuda = memory::load_cuda();
  if (!cuda.space) {
    Error error;
    error.kind = ErrorKind::unsupported;
    error.attempted = "use the CUDA space";
    error.why = cuda.state.why_not;
    return error;
  }
  auto pinned = cuda.space->pin(0, pinned_bytes);
  if (!pinned) return pinned.error();
  auto lane = cuda.space->open_lane(0);
  if (!lane) return lane.error();
  return DeviceSide{std::move(*pinned), std::move(*lane)};
}

std::unique_ptr<TestMemory> cuda_memory(std::size_t size_bytes) {
  std::string why;
  return make_cuda_memory(size_bytes, &why);
}

RigKind staged_on_host(std::string name, std::uint32_t copiers) {
  RigKind kind;
  kind.name = std::move(name);
  kind.make = staged(copiers, slow_lane);
  kind.reports_fault = false;  // the lane copies on the CPU
  return kind;
}

RigKind staged_on_cuda(std::string name, std::uint32_t copiers) {
  RigKind kind;
  kind.name = std::move(name);
  kind.make = staged(copiers, cuda_lane);
  kind.memory = cuda_memory;
  kind.reports_fault = false;  // a bad device address may cost the context
  return kind;
}

RigKind on_host(std::string name, HostMaker make) {
  RigKind kind;
  kind.name = std::move(name);
  kind.make = alone(std::move(make));
  return kind;
}

}  // namespace

std::vector<RigKind> rigs_of(const std::string& space) {
  if (space == "cuda") {
    return {staged_on_cuda("StagedOne", 1), staged_on_cuda("StagedMany", worker_threads)};
  }
  auto null = on_host("Null", make_null);
  null.moves_bytes = false;
  return {null,
          on_host("Skeleton", make_skeleton),
          on_host("Posix", make_posix),
          on_host("Threaded", make_threaded),
          on_host("Uring", make_uring),
          staged_on_host("StagedOne", 1),
          staged_on_host("StagedMany", worker_threads)};
}

}  // namespace straightway::contract
