#include "api/engine.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <future>
#include <new>

#include "api/transport_maker.hpp"
#include "drive/inline_transfer.hpp"
#include "drive/sync_thread.hpp"
#include "memory/desks.hpp"
#include "memory/space.hpp"
#include "os/facts.hpp"
#include "os/machine_facts.hpp"
#include "os/memory_access.hpp"
#include "plan/direct_paths.hpp"
#include "plan/effort.hpp"
#include "plan/settings.hpp"
#include "transport/staged.hpp"

namespace straightway {
namespace {

// A page of a lane's own, which the device writes.
constexpr std::uint64_t lane_pinned_bytes = 4096;
// Beside the caller's thread, for a read of 1 MiB: one for each piece.
constexpr std::uint32_t crew_helpers = 7;
constexpr std::uint32_t page_alive = 1;
constexpr std::uint32_t page_reviving = 2;

// A page that reads as zeros in a forked child: how a child finds out, without a fork handler.
std::atomic<std::uint32_t>* map_alive_page() {
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (::madvise(page, 4096, MADV_WIPEONFORK) != 0) {
    ::munmap(page, 4096);
    return nullptr;
  }
  return new (page) std::atomic<std::uint32_t>(page_alive);
}

std::optional<std::string> read_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

// None in a tree that a test made.
std::unique_ptr<os::Neighbours> neighbours_of(const std::string& root) {
  return root.empty() ? std::make_unique<os::Neighbours>() : nullptr;
}

// Threads that may work for transfers at the same time.
drive::CopierBudget budget_of(const Settings& settings) {
  const auto cpus = os::usable_cpus();
  return {plan::thread_budget(settings, cpus.count), cpus.count, cpus.quota == cpus.count,
          settings.threads.value > 0};
}

template <class T>
void override_setting(Setting<T>& setting, const std::optional<T>& value) {
  if (value) setting = {*value, Origin::api};
}

}  // namespace

Error forked_error(std::string attempted) {
  return {ErrorKind::forked,
          ErrorOrigin::straightway,
          0,
          std::move(attempted),
          "",
          {},
          "this process is a forked child, where CUDA cannot be used",
          "start it with spawn or exec instead of fork, or read into host memory"};
}

static Error wrong_device(const MemoryRange& found, std::int32_t said) {
  return {ErrorKind::invalid_argument,
          ErrorOrigin::straightway,
          0,
          "use the memory of cuda:" + std::to_string(said),
          "",
          {},
          found.device < 0 ? "its pointer is one of host memory"
                           : "its pointer lies on cuda:" + std::to_string(found.device),
          "give an array whose device is that of its memory"};
}

Error calls_itself_error(std::string attempted) {
  return {ErrorKind::invalid_argument,
          ErrorOrigin::system,
          EDEADLK,
          std::move(attempted),
          "",
          {},
          "a callback of this Context asked for it, on the thread that would have to do it",
          "submit it and use on_done, or do it on another thread"};
}

struct Engine::Parts {
  Parts(const Settings& settings, const drive::CopierBudget& budget, const std::string& root)
      : copier_share(std::make_shared<drive::CopierShare>(budget, neighbours_of(root))),
        peer_ways(root),
        vendor_ways(std::make_shared<VendorWays>(root)),
        desks(settings.pinned_bytes.value, drive::inline_limit_bytes, drive::crew_desk_bytes),
        crew(std::min(budget.copiers - 1, crew_helpers)) {}

  std::mutex mutex;
  std::shared_ptr<const MachineFacts> machine;  // without GPU facts until cuda_loaded
  bool machine_has_gpu = false;
  bool cuda_loaded = false;
  memory::Cuda cuda;
  std::shared_ptr<drive::CopierShare> copier_share;  // the pump's too
  memory::PeerMappings peer_mappings;
  PeerWays peer_ways;
  std::shared_ptr<VendorWays> vendor_ways;  // the pump's transports use it too
  drive::SyncThread sync_thread;            // before the pump, which adds to it until it ends
  memory::Desks desks;
  drive::Crew crew;
  std::unique_ptr<drive::Pump> pump;
  std::atomic<drive::Pump*> started_pump{nullptr};
  std::shared_ptr<memory::PinBudget> pin_budget;
  std::unique_ptr<receipt::Ledger> ledger;
  std::atomic<receipt::Ledger*> started_ledger{nullptr};
  bool ledger_tried = false;
};

Result<std::shared_ptr<Engine>> Engine::create(const ContextOptions& options,
                                               const os::Syscalls& syscalls,
                                               const std::string& root) {
  auto settings = std::make_shared<Settings>();
  override_setting(settings->policy, options.policy);
  override_setting(settings->cache, options.cache);
  override_setting(settings->evidence, options.evidence);
  override_setting(settings->threads, options.threads);
  override_setting(settings->pinned_bytes, options.pinned_bytes);
  override_setting(settings->pin_bytes, options.pin_bytes);
  override_setting(settings->ledger, options.ledger);
  override_setting(settings->vendor_library, options.vendor_library);
  if (options.threads && *options.threads > 1024) {
    return Error{ErrorKind::invalid_argument,
                 ErrorOrigin::straightway,
                 0,
                 "set threads to " + std::to_string(*options.threads),
                 "",
                 {},
                 "it must lie between 1 and 1024, or be 0 for a choice from the machine",
                 ""};
  }
  if (options.pinned_bytes && *options.pinned_bytes < transport::staged_piece_bytes) {
    return Error{ErrorKind::invalid_argument,
                 ErrorOrigin::straightway,
                 0,
                 "set pinned_bytes to " + std::to_string(*options.pinned_bytes),
                 "",
                 {},
                 "the ring needs at least 1 MiB",
                 "give 1M or more; 64M is the default"};
  }
  const auto& vendor = settings->vendor_library.value;
  if (!vendor.empty() && vendor != "none" && !vendor.starts_with('/')) {
    return Error{ErrorKind::invalid_argument,
                 ErrorOrigin::straightway,
                 0,
                 "set vendor_library to " + vendor,
                 "",
                 {},
                 "that is no absolute path",
                 "give the path of the vendor's libcufile.so.0, or none to leave it alone"};
  }
  if (auto read = plan::read_environment(*settings, read_variable); !read) return read.error();
  std::shared_ptr<Engine> engine(
      new Engine(std::move(settings), options.on_warning, syscalls, root));
  if (engine->alive_ == nullptr) {
    return Error{ErrorKind::unsupported,
                 ErrorOrigin::system,
                 errno,
                 "create a context",
                 "",
                 {},
                 "the kernel has no MADV_WIPEONFORK",
                 "use Linux 4.14 or newer"};
  }
  return engine;
}

Engine::Engine(std::shared_ptr<const Settings> settings,
               std::function<void(std::string_view)> warning, const os::Syscalls& syscalls,
               std::string root)
    : settings_(std::move(settings)),
      on_warning_(std::move(warning)),
      syscalls_(&syscalls),
      root_(std::move(root)),
      budget_(budget_of(*settings_)),
      // Not where the program was given other privileges than its user's.
      tally_(::secure_getenv("STRAIGHTWAY_RUN") != nullptr
                 ? receipt::Tally::open(::secure_getenv("STRAIGHTWAY_RUN"))
                 : nullptr),
      parts_(new Parts(*settings_, budget_, root_)),
      alive_(map_alive_page()) {}

Engine::~Engine() {
  if (alive_ == nullptr) {
    delete parts_.load();
    return;
  }
  // In a child whose Context was never used there, the parts are the parent's: left alone.
  if (alive_->load() == page_alive) delete parts_.load();
  ::munmap(alive_, 4096);
}

// The first to come in a child makes new parts; the parent's may hold locks that nobody releases.
void Engine::revive() {
  auto made = std::make_unique<Parts>(
      *settings_, budget_, root_);  // may throw, so it comes before the others wait for us
  std::uint32_t wiped = 0;
  if (alive_->compare_exchange_strong(wiped, page_reviving)) {
    parts_.store(made.release());
    ++forks_;
    alive_->store(page_alive);
    return;
  }
  while (alive_->load() != page_alive) {
  }
}

Engine::Parts& Engine::parts() {
  if (alive_->load(std::memory_order_acquire) != page_alive) revive();
  return *parts_.load(std::memory_order_acquire);
}

std::uint32_t Engine::generation() {
  parts();
  return forks_;
}

// Never in a forked child: the parent's driver state is there, and unusable.
const memory::Cuda& Engine::cuda(Parts& live) {
  if (!live.cuda_loaded && forks_ == 0) {
    live.cuda = memory::load_cuda();
    live.cuda_loaded = true;
  }
  return live.cuda;
}

std::shared_ptr<const MachineFacts> Engine::machine(bool with_gpu) {
  auto& live = parts();
  const std::lock_guard lock(live.mutex);
  if (live.machine && (live.machine_has_gpu || !with_gpu)) return live.machine;
  auto facts =
      live.machine ? *live.machine : os::read_machine_facts(root_, settings_->vendor_library.value);
  if (with_gpu) {
    const auto& state = cuda(live).state;
    facts.cuda_driver = state.driver;
    facts.cuda_devices = state.devices;
    facts.cuda_why_not = forks_ > 0 ? "this is a forked child" : state.why_not;
    facts.cuda_simulated = state.simulated;
    live.machine_has_gpu = true;
  }
  // Looked at only where they matter.
  if (!live.machine && facts.vendor_library &&
      plan::wants_p2pdma(facts, settings_->cufile.use_pci_p2pdma.value)) {
    facts.p2pdma_pages = os::has_gpu_pages(root_, facts.kernel);
  }
  live.machine = std::make_shared<const MachineFacts>(std::move(facts));
  return live.machine;
}

VendorWays& Engine::vendor_ways() { return *parts().vendor_ways; }

Result<std::shared_ptr<transport::CufileLibrary>> Engine::vendor_library() {
  if (transport::CufileLibrary::inside()) {
    return Error{ErrorKind::unsupported,
                 ErrorOrigin::straightway,
                 0,
                 "use the vendor's cuFile library",
                 "",
                 {},
                 "the call came out of that library itself",
                 ""};
  }
  const auto known = machine(true);
  auto& live = parts();
  const transport::P2pdmaWish wish{plan::vendor_route(*known) == Route::p2pdma,
                                   settings_->cufile.use_pci_p2pdma.value};
  auto library = live.vendor_ways->library(known->vendor_path, wish);
  const std::lock_guard lock(live.mutex);
  auto facts = *live.machine;
  facts.vendor_version = library ? (*library)->version() : 0;
  facts.vendor_why_not = library ? "" : library.error().why;
  facts.vendor_cuts = library && (*library)->cuts();
  if (library) facts.p2pdma_pages = (*library)->p2pdma();
  if (!(facts == *live.machine)) {
    live.machine = std::make_shared<const MachineFacts>(std::move(facts));
  }
  return library;
}

Result<MemoryRange> Engine::find_memory(const Memory& memory, std::uint64_t size_bytes,
                                        MemoryRange* piece) {
  const auto address = reinterpret_cast<std::uint64_t>(memory.address);
  if (size_bytes == 0) return MemoryRange{SpaceKind::host, -1, address, 0};
  const auto found = find_piece(memory, size_bytes);
  if (!found) return found.error();
  if (memory.device && *memory.device != found->device) return wrong_device(*found, *memory.device);
  if (piece != nullptr) *piece = *found;
  return MemoryRange{found->space, found->device, address, size_bytes};
}

// Host memory where no driver is loaded: then no pointer is a device's.
Result<MemoryRange> Engine::find_piece(const Memory& memory, std::uint64_t size_bytes) {
  if (!memory::driver_is_loaded()) return MemoryRange{SpaceKind::host, -1, 0, UINT64_MAX};
  const MemoryRange host{SpaceKind::host, -1, reinterpret_cast<std::uint64_t>(memory.address),
                         size_bytes};
  bool forked = is_forked_child();
  const auto space = [&] {
    auto& live = parts();
    const std::lock_guard lock(live.mutex);
    const auto& loaded = cuda(live);
    forked = forked || loaded.state.forked;
    return loaded.space;
  }();
  if (!space && forked && !os::is_readable(memory.address, 1)) {
    return forked_error("use the memory of a GPU");  // or a bad pointer: nobody can tell here
  }
  if (!space) return host;
  const auto found = space->find(memory.address, size_bytes);
  if (!found) return found.error();
  return *found ? **found : host;
}

Result<std::unique_ptr<memory::Mark>> Engine::mark_stream(std::int32_t device,
                                                          const std::optional<Stream>& stream) {
  const auto space = device_space();
  if (!space) return forked_error("order a transfer after a stream");
  return space->mark_stream(device,
                            stream ? std::optional<void*>(stream->handle) : std::optional<void*>());
}

Result<drive::Pump*> Engine::pump(Parts& live) {
  if (auto* started = live.started_pump.load(std::memory_order_acquire)) return started;
  const std::lock_guard lock(live.mutex);
  if (!live.pump) {
    const auto ring_bytes =
        settings_->pinned_bytes.value - live.desks.budget_bytes() - lane_pinned_bytes;
    auto started = drive::Pump::start(TransportMaker{live.vendor_ways, syscalls_, budget_.copiers,
                                                     ring_bytes, live.copier_share->limit()},
                                      live.copier_share);
    if (!started) return started.error();
    live.pump = std::move(*started);
    live.started_pump.store(live.pump.get(), std::memory_order_release);
  }
  return live.pump.get();
}

Result<std::unique_ptr<memory::Desk>> Engine::take_desk(std::int32_t device,
                                                        std::uint64_t size_bytes) {
  const auto space = device_space();
  if (!space) return forked_error("transfer to or from a GPU");
  return parts().desks.take(*space, device, size_bytes);
}

void Engine::give_desk(std::int32_t device, std::uint64_t size_bytes,
                       std::unique_ptr<memory::Desk> desk) {
  parts().desks.give(device, size_bytes, std::move(desk));
}

memory::PeerMappings& Engine::peer_mappings() { return parts().peer_mappings; }
PeerWays& Engine::peer_ways() { return parts().peer_ways; }

drive::Crew& Engine::crew() { return parts().crew; }

drive::CopierShare& Engine::copier_share() { return *parts().copier_share; }

bool Engine::pump_is_idle() {
  const auto* started = parts().started_pump.load(std::memory_order_acquire);
  return started == nullptr || started->idle();
}

Result<void> Engine::submit(std::shared_ptr<drive::Order> order) {
  auto& live = parts();
  auto started = pump(live);
  if (!started) return started.error();
  if (order->space == SpaceKind::cuda) {
    order->device_space = device_space();
    if (!order->device_space) return forked_error("transfer to or from a GPU");
  }
  (*started)->submit(std::move(order));
  return {};
}

std::shared_ptr<memory::Space> Engine::device_space() {
  auto& live = parts();
  const std::lock_guard lock(live.mutex);
  return cuda(live).space;
}

std::shared_ptr<memory::PinBudget> Engine::pin_budget() {
  constexpr std::uint64_t share_of_available = 4;
  auto& live = parts();
  const std::lock_guard lock(live.mutex);
  if (!live.pin_budget) {
    const auto wanted = settings_->pin_bytes.value;
    live.pin_budget = std::make_shared<memory::PinBudget>(
        wanted > 0 ? wanted : os::spare_memory_bytes().value_or(0) / share_of_available);
  }
  return live.pin_budget;
}

void Engine::wake_pump() {
  if (auto* pump = parts().started_pump.load(std::memory_order_acquire)) pump->wake();
}

void Engine::make_durable(std::function<void()> work) { parts().sync_thread.add(std::move(work)); }

bool Engine::on_own_thread() {
  auto& live = parts();
  auto* pump = live.started_pump.load(std::memory_order_acquire);
  return pump != nullptr && (pump->on_own_thread() || live.sync_thread.on_own_thread());
}

void Engine::record(const Receipt& receipt) {
  if (tally_) tally_->add(receipt);
  if (!settings_->ledger.value) return;
  auto& live = parts();
  auto* ledger = live.started_ledger.load(std::memory_order_acquire);
  if (ledger == nullptr) ledger = start_ledger(live);
  if (ledger != nullptr) ledger->add(receipt);
}

receipt::Ledger* Engine::start_ledger(Parts& live) {
  std::optional<Error> failed;
  {
    const std::lock_guard lock(live.mutex);
    if (live.ledger_tried) return live.ledger.get();
    live.ledger_tried = true;
    auto created = receipt::Ledger::create();
    if (created) {
      live.ledger = std::move(*created);
      live.started_ledger.store(live.ledger.get(), std::memory_order_release);
      return live.ledger.get();
    }
    failed = created.error();
  }
  warn(failed->message());  // without the lock: the sink is the user's
  return nullptr;
}

void Engine::record_error(Direction direction) {
  if (tally_) tally_->add_error(direction);
  if (auto* ledger = parts().started_ledger.load(std::memory_order_acquire)) {
    ledger->add_error(direction);
  }
}

// Pays first-use costs: facts, the pump's thread, and for a device its ring, by a transfer of
// nothing that opens its transport.
Result<void> Engine::warmup(std::int32_t device) {
  if (on_own_thread()) return calls_itself_error("warm up a context");
  auto& live = parts();
  machine(device >= 0);
  auto started = pump(live);
  if (!started) return started.error();
  if (device < 0) return {};
  const auto space = device_space();
  if (!space) {
    return Error{ErrorKind::unsupported,
                 ErrorOrigin::straightway,
                 0,
                 "warm up cuda:" + std::to_string(device),
                 "",
                 {},
                 machine(true)->cuda_why_not,
                 "leave the device out"};
  }
  auto order = std::make_shared<drive::Order>();
  order->space = SpaceKind::cuda;
  order->device = device;
  // Shared, since the pump's thread may still be inside set_value() when the waiter is gone.
  auto opened = std::make_shared<std::promise<std::optional<Error>>>();
  order->on_drained = [opened](const drive::Drained& what) { opened->set_value(what.error); };
  if (auto submitted = submit(std::move(order)); !submitted) return submitted.error();
  if (auto error = opened->get_future().get()) return *error;
  return {};
}

void Engine::warn(std::string_view text) const {
  if (!on_warning_) return;
  try {
    on_warning_(text);
  } catch (...) {  // a sink's own trouble is none of the transfer's
  }
}

}  // namespace straightway
