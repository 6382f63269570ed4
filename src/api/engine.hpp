#pragma once
// What a Context is made of: the one place that names concrete parts and wires them. Everything in
// it is made on first use; a forked child makes it anew.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "api/peer_ways.hpp"
#include "api/vendor_ways.hpp"
#include "drive/crew.hpp"
#include "drive/pump.hpp"
#include "memory/cuda_space.hpp"
#include "memory/file_pins.hpp"
#include "memory/peer_memory.hpp"
#include "os/syscalls.hpp"
#include "receipt/ledger.hpp"
#include "receipt/tally.hpp"
#include "straightway/context.hpp"
#include "straightway/file.hpp"

namespace straightway {

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  // syscalls stay valid for the life of the process. root: a prefix for /proc and /sys in tests.
  static Result<std::shared_ptr<Engine>> create(const ContextOptions& options,
                                                const os::Syscalls& syscalls = os::kernel(),
                                                const std::string& root = "");
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const std::shared_ptr<const Settings>& settings() const { return settings_; }
  const os::Syscalls& syscalls() const { return *syscalls_; }
  std::shared_ptr<const MachineFacts> machine(bool with_gpu);
  // The space and device of a pointer. Host memory wherever no CUDA driver was loaded by anyone.
  // piece, where given, becomes what is known to be one piece of memory around it.
  Result<MemoryRange> find_memory(const Memory& memory, std::uint64_t size_bytes,
                                  MemoryRange* piece = nullptr);
  // The work queued on the stream up to now.
  Result<std::unique_ptr<memory::Mark>> mark_stream(std::int32_t device,
                                                    const std::optional<Stream>& stream);
  // A desk that holds size_bytes <= drive::crew_desk_bytes, for a small transfer on the caller's
  // thread; null where all are taken, or the budget of pinned bytes has no room for desks. Each
  // goes back by give_desk for the same size; null after a copy that failed.
  Result<std::unique_ptr<memory::Desk>> take_desk(std::int32_t device, std::uint64_t size_bytes);
  void give_desk(std::int32_t device, std::uint64_t size_bytes, std::unique_ptr<memory::Desk> desk);
  // The peer memory that this process knows, and the ways to it.
  memory::PeerMappings& peer_mappings();
  PeerWays& peer_ways();
  VendorWays& vendor_ways();
  // The vendor's cuFile library, loaded by the first call; what came of it is a fact of the machine
  // from then on. Only where a plan goes through it: then the CUDA driver is initialised.
  Result<std::shared_ptr<transport::CufileLibrary>> vendor_library();
  const std::string& root() const { return root_; }
  // Shares the larger of the small reads.
  drive::Crew& crew();
  Result<void> submit(std::shared_ptr<drive::Order> order);
  // What the copiers are bounded by beside other processes.
  drive::CopierShare& copier_share();
  // Whether the pump has nothing to do.
  bool pump_is_idle();
  // The CUDA space; null where there is none, or in a forked child.
  std::shared_ptr<memory::Space> device_space();
  // How many threads a transfer may take.
  std::uint32_t thread_budget() const { return budget_.copiers; }
  // What pins of files may hold, all together.
  std::shared_ptr<memory::PinBudget> pin_budget();
  void wake_pump();
  // Runs work (fsync) on a thread of its own; one after the other. Throws std::bad_alloc with
  // nothing begun.
  void make_durable(std::function<void()> work);
  // Whether the caller is a callback on a thread of ours: it must wait for no transfer.
  bool on_own_thread();
  void record(const Receipt& receipt);
  void record_error(Direction direction);
  void warn(std::string_view text) const;
  Result<void> warmup(std::int32_t device);

  // Counts forks: differs from what a file or job remembered when that belongs to the parent.
  std::uint32_t generation();
  bool is_forked_child() { return generation() > 0; }

 private:
  struct Parts;  // made again in a forked child; the parent's copy is left alone there
  Engine(std::shared_ptr<const Settings> settings, std::function<void(std::string_view)> warning,
         const os::Syscalls& syscalls, std::string root);
  Parts& parts();
  void revive();
  const memory::Cuda& cuda(Parts& live);
  Result<MemoryRange> find_piece(const Memory& memory, std::uint64_t size_bytes);
  Result<drive::Pump*> pump(Parts& live);
  receipt::Ledger* start_ledger(Parts& live);

  std::shared_ptr<const Settings> settings_;
  std::function<void(std::string_view)> on_warning_;
  const os::Syscalls* syscalls_;
  const std::string root_;
  const drive::CopierBudget budget_;
  const std::unique_ptr<receipt::Tally> tally_;  // null unless `straightway run` started us
  std::atomic<Parts*> parts_{nullptr};
  std::atomic<std::uint32_t>* alive_ = nullptr;  // in a page that the kernel wipes in a child
  std::uint32_t forks_ = 0;
};

// The CUDA device may not be touched in a forked child.
Error forked_error(std::string attempted);
// A callback may not wait for what its own thread has to do.
Error calls_itself_error(std::string attempted);

}  // namespace straightway
