#include "tests/contract/rigs.hpp"

#include <cstdlib>
#include <utility>

#include "examples/porting/skeleton_transport.hpp"
#include "memory/cuda_space.hpp"
#include "os/syscalls.hpp"
#include "tests/contract/slow_lane.hpp"
#include "transport/null.hpp"
#include "transport/pinned_cache.hpp"
#include "transport/posix.hpp"
#include "transport/staged.hpp"
#include "transport/threaded.hpp"
#include "transport/uring.hpp"
#include "transport/vendor_cufile.hpp"

namespace straightway::contract {
namespace {

using transport::Transport;
using transport::Wake;

constexpr std::uint32_t worker_threads = 3;
constexpr std::uint32_t ring_depth = 16;
constexpr std::size_t staged_slots = 5;  // few, so that they are used again and again
constexpr std::size_t pinned_bytes = staged_slots * transport::staged_piece_bytes;

using Maker = std::function<Result<std::unique_ptr<Transport>>(Wake&)>;

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
std::function<Result<Rig>()> alone(Maker make) {
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

Result<std::shared_ptr<memory::Space>> cuda_space() {
  static const memory::Cuda cuda = memory::load_cuda();
  if (cuda.space) return cuda.space;
  Error error;
  error.kind = ErrorKind::unsupported;
  error.attempted = "use the CUDA space";
  error.why = cuda.state.why_not;
  return error;
}

Result<DeviceSide> cuda_lane() {
  const auto space = cuda_space();
  if (!space) return space.error();
  auto pinned = (*space)->pin(0, pinned_bytes);
  if (!pinned) return pinned.error();
  auto lane = (*space)->open_lane(0);
  if (!lane) return lane.error();
  return DeviceSide{std::move(*pinned), std::move(*lane)};
}

// Whose files need something first: only attach(file) is left to say.
template <class Inner>
class PreparingFirst : public Transport {
 public:
  template <class... Arguments>
  explicit PreparingFirst(Arguments&&... arguments)
      : inner_(std::forward<Arguments>(arguments)...) {}
  const transport::Capabilities& capabilities() const override { return inner_.capabilities(); }
  Result<transport::Attachment> attach(const MemoryRange& memory) override {
    return inner_.attach(memory);
  }
  std::size_t submit(std::span<const transport::Segment> segments) override {
    return inner_.submit(segments);
  }
  std::size_t reap(std::span<transport::Completion> completions) override {
    return inner_.reap(completions);
  }

 protected:
  Inner inner_;
};

// Of files that are pinned as a whole when they are attached.
class PinningFirst final : public PreparingFirst<transport::PinnedCache> {
 public:
  PinningFirst(std::shared_ptr<memory::Space> space, std::unique_ptr<memory::Lane> lane)
      : PreparingFirst(std::move(lane)), space_(std::move(space)) {}
  using PreparingFirst::attach;
  Result<transport::Attachment> attach(const transport::FileRef& file) override {
    auto pins = memory::FilePins::make(space_, std::make_shared<memory::PinBudget>(UINT64_MAX),
                                       file.fd, nullptr, {.size_bytes = 8192, .helpers = 2});
    if (!pins) return pins.error();
    if (auto added = (*pins)->add({{0, INT64_MAX}}, 0); !added) return added.error();
    return inner_.attach(transport::FileRef{file.fd, -1, std::move(*pins)});
  }

 private:
  const std::shared_ptr<memory::Space> space_;
};

Result<std::unique_ptr<Transport>> make_pinned_cache(Wake& /*wake*/) {
  const auto space = cuda_space();
  if (!space) return space.error();
  auto lane = (*space)->open_lane(0);
  if (!lane) return lane.error();
  return std::unique_ptr<Transport>(std::make_unique<PinningFirst>(*space, std::move(*lane)));
}

// Of files that are registered with the vendor's library when they are attached.
class RegisteringFirst final : public PreparingFirst<transport::Threaded> {
 public:
  RegisteringFirst(std::shared_ptr<transport::CufileLibrary> library,
                   transport::Threaded::Make make, Wake& wake)
      : PreparingFirst(std::move(make), worker_threads, wake), library_(std::move(library)) {}
  using PreparingFirst::attach;
  Result<transport::Attachment> attach(const transport::FileRef& file) override {
    auto registered = transport::CufileFile::make(library_, file.fd);
    if (!registered) return registered.error();
    return inner_.attach(transport::FileRef{file.fd, -1, nullptr, std::move(*registered)});
  }

 private:
  const std::shared_ptr<transport::CufileLibrary> library_;
};

// With the stand-in only: the real library needs nvidia-fs, and then a file on the right drive.
Result<std::unique_ptr<Transport>> make_vendor(Wake& wake) {
  const auto space = cuda_space();
  if (!space) return space.error();
  const char* path = std::getenv("CONTRACT_VENDOR_LIBRARY");
  auto library = transport::CufileLibrary::open(path == nullptr ? "/nowhere" : path, {});
  if (!library) {
    Error error = library.error();
    error.kind = ErrorKind::unsupported;
    return error;
  }
  const auto make = [library = *library, space = *space] {
    return std::make_unique<transport::VendorCufile>(library, space, 0);
  };
  return std::unique_ptr<Transport>(std::make_unique<RegisteringFirst>(*library, make, wake));
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

RigKind of_one(std::string name, Maker make) {
  RigKind kind;
  kind.name = std::move(name);
  kind.make = alone(std::move(make));
  return kind;
}

}  // namespace

std::vector<RigKind> rigs_of(const std::string& space) {
  if (space == "cuda") {
    auto pinned = of_one("PinnedCache", make_pinned_cache);
    pinned.memory = cuda_memory;
    pinned.whole_file = false;
    pinned.reports_fault = false;
    auto vendor = of_one("VendorCufile", make_vendor);
    vendor.memory = cuda_memory;
    vendor.reports_fault = false;
    return {staged_on_cuda("StagedOne", 1), staged_on_cuda("StagedMany", worker_threads), pinned,
            vendor};
  }
  auto null = of_one("Null", make_null);
  null.moves_bytes = false;
  return {null,
          of_one("Skeleton", make_skeleton),
          of_one("Posix", make_posix),
          of_one("Threaded", make_threaded),
          of_one("Uring", make_uring),
          staged_on_host("StagedOne", 1),
          staged_on_host("StagedMany", worker_threads)};
}

}  // namespace straightway::contract
