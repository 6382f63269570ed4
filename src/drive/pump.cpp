#include "drive/pump.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "drive/account.hpp"
#include "os/signals_blocked.hpp"
#include "plan/runs.hpp"

namespace straightway::drive {
namespace {

constexpr std::uint64_t progress_interval_ns = 50'000'000;
constexpr std::uint64_t ready_poll_interval_ns = 50'000;

// What a callback throws has nowhere to go: the thread belongs to all transfers.
void tell(const std::function<void(std::uint64_t)>& on_progress, std::uint64_t moved_bytes) {
  try {
    on_progress(moved_bytes);
  } catch (...) {
  }
}

Error cancelled_error(Direction direction, const TransferSpec& spec) {
  return {ErrorKind::cancelled,
          ErrorOrigin::straightway,
          ECANCELED,
          to_string(direction),
          spec.files.empty() ? "" : spec.files.front().path,
          {},
          "the caller cancelled it",
          ""};
}

// What a transfer's runs go through.
struct Needs {
  std::array<bool, 2> storage{};  // by whether it is O_DIRECT
  bool pinned_cache = false;
  bool vendor = false;
};

Needs needs_of(const TransferSpec& spec, SpaceKind space) {
  Needs needs;
  needs.storage[0] = spec.legs.empty();  // a warm-up: open it
  for (const auto& leg : spec.legs) {
    for (std::uint8_t i = 0; i < leg.run_count; ++i) {
      const auto& run = leg.runs[i];
      const bool vendor = plan::may_take_vendor(run, space);
      needs.vendor |= vendor;
      needs.pinned_cache |= run.route == Route::pinned_cache;
      if (!vendor || !run.direct_io) needs.storage[run.direct_io] = true;
      if (run.cold == ColdWay::direct) needs.storage[1] = true;
      if (vendor) needs.storage[0] = true;  // for a file that shrank, too
    }
  }
  if (needs.storage[1]) needs.storage[0] = true;  // to fall back to, and for edges
  return needs;
}

// Whether copiers have much to do for it, of what takes CPUs.
bool is_large(const TransferSpec& spec) {
  std::uint64_t bytes = 0;
  for (const auto& leg : spec.legs) {
    for (std::uint8_t i = 0; i < leg.run_count; ++i) {
      const auto& run = leg.runs[i];
      const bool copied = run.route == Route::staged || run.route == Route::buffered;
      if (copied && !run.direct_io) bytes += run.file.size_bytes;
    }
    if (bytes > CopierShare::large_transfer_bytes) return true;
  }
  return false;
}

}  // namespace

Error out_of_memory_error(Direction direction) {
  return {ErrorKind::out_of_memory,
          ErrorOrigin::system,
          ENOMEM,
          to_string(direction),
          "",
          {},
          "out of memory",  // as short as a string that allocates nothing
          ""};
}

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

struct Pump::Loop {
  // A transport that is open, and how many transfers use it.
  struct Station {
    TransportKey key;
    std::unique_ptr<transport::Transport> transport;
    std::uint32_t users = 0;
    bool broken = false;  // closed when its last user is gone; the next transfer gets a new one
  };
  struct Active {
    std::shared_ptr<Order> order;
    std::unique_ptr<Transfer> transfer;  // null: not begun
    std::vector<Station*> stations;
    std::uint64_t next_progress_ns = 0;
    bool is_large = false;
  };

  Loop(OpenTransport open, std::shared_ptr<CopierShare> sharing)
      : open_transport(std::move(open)), share(std::move(sharing)) {}

  void run();
  bool take_orders();
  bool append(Active& active);
  bool reap_all();
  void complete(Active& active, const transport::Completion& completion, std::uint64_t now);
  bool step_all(std::uint64_t now);
  bool step(Active& active, std::uint32_t id, std::uint64_t now);
  void give_up(Active& active);
  void begin(Active& active, std::uint32_t id);
  Result<Station*> station(const TransportKey& key, const Order& order);
  Result<transport::Transport*> use_station(Active& active, const TransportKey& key);
  void report_progress(Active& active, std::uint64_t now);
  void finish(Active& active, std::optional<Error> error);
  void close_broken();
  std::uint64_t wait_limit_ns(std::uint64_t now) const;
  void keep_share(std::uint64_t now);

  OpenTransport open_transport;
  std::shared_ptr<CopierShare> share;
  std::unique_ptr<transport::Wake> wake;
  std::mutex mutex;
  std::vector<std::shared_ptr<Order>> inbox;
  bool stopping = false;
  std::atomic<std::uint32_t> orders{0};  // submitted, and not drained yet
  // The rest belongs to the pump's thread.
  std::vector<std::unique_ptr<Station>> stations;
  std::vector<Active> actives;  // by transfer id; an entry without an order is free
  std::size_t first = 0;        // whose turn it is to submit first
  bool worked = false;
  std::uint64_t keep_share_ns = UINT64_MAX;  // when the share is to be told again
};

void Pump::Loop::run() {
  for (;;) {
    worked = take_orders();
    const auto now = now_ns();
    keep_share(now);
    worked = reap_all() || worked;
    worked = step_all(now) || worked;
    close_broken();
    if (worked) continue;
    const bool idle = std::none_of(actives.begin(), actives.end(),
                                   [](const Active& active) { return active.order != nullptr; });
    {
      const std::lock_guard lock(mutex);
      if (idle && stopping && inbox.empty()) break;
    }
    wake->wait(wait_limit_ns(now));
  }
  stations.clear();  // on this thread: a ring belongs to its creator
}

void Pump::Loop::keep_share(std::uint64_t now) {
  if (!share) return;
  const bool working = std::any_of(actives.begin(), actives.end(), [](const Active& active) {
    return active.transfer != nullptr && active.is_large;
  });
  keep_share_ns = UINT64_MAX;
  try {
    keep_share_ns = share->keep(working, now);
  } catch (const std::bad_alloc&) {
    // what was seen last holds until the next look
  }
}

bool Pump::Loop::take_orders() {
  std::vector<std::shared_ptr<Order>> taken;
  {
    const std::lock_guard lock(mutex);
    taken.swap(inbox);
  }
  for (auto& order : taken) {
    auto free = std::find_if(actives.begin(), actives.end(),
                             [](const Active& active) { return active.order == nullptr; });
    Active next;
    next.is_large = is_large(order->spec);
    next.order = std::move(order);
    if (free != actives.end()) {
      *free = std::move(next);
    } else if (!append(next)) {
      give_up(next);
    }
  }
  return !taken.empty();
}

bool Pump::Loop::append(Active& active) {
  try {
    actives.push_back(std::move(active));
    return true;
  } catch (const std::bad_alloc&) {  // and active is as it was
    return false;
  }
}

// Where memory runs out, one transfer ends and the others go on.
void Pump::Loop::give_up(Active& active) {
  const auto direction = active.order->spec.direction;
  if (!active.transfer) return finish(active, out_of_memory_error(direction));
  active.transfer->stop(out_of_memory_error(direction));
}

void Pump::Loop::complete(Active& active, const transport::Completion& completion,
                          std::uint64_t now) {
  try {
    active.transfer->complete(completion, now);
  } catch (const std::bad_alloc&) {
    give_up(active);
  }
}

bool Pump::Loop::reap_all() {
  std::array<transport::Completion, 512> completions;
  bool any = false;
  for (auto& station : stations) {
    std::size_t count = 0;
    while ((count = station->transport->reap(completions)) > 0) {
      any = true;
      const auto now = now_ns();
      for (std::size_t i = 0; i < count; ++i) {
        auto& active = actives[completions[i].cookie >> 32];
        const auto& error = completions[i].error;
        station->broken |= error && error->kind == ErrorKind::device;
        station->broken |= station->transport->capabilities().broken;
        complete(active, completions[i], now);
      }
    }
  }
  return any;
}

bool Pump::Loop::step_all(std::uint64_t now) {
  bool any = false;
  const auto count = actives.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto id = static_cast<std::uint32_t>((first + i) % count);
    if (!actives[id].order) continue;
    try {
      any = step(actives[id], id, now) || any;
    } catch (const std::bad_alloc&) {
      give_up(actives[id]);
      any = true;
    }
  }
  first = count == 0 ? 0 : (first + 1) % count;
  return any;
}

bool Pump::Loop::step(Active& active, std::uint32_t id, std::uint64_t now) {
  if (!active.transfer) begin(active, id);
  if (!active.order || !active.transfer) return false;
  if (active.order->cancelled.load() && !active.transfer->error()) {
    active.transfer->stop(cancelled_error(active.order->spec.direction, active.order->spec));
  }
  const bool any = active.transfer->step(now);
  active.order->moved_bytes.store(active.transfer->moved_bytes());
  report_progress(active, now);
  if (!active.transfer->drained()) return any;
  finish(active, active.transfer->take_error());
  return true;
}

// Opens what the transfer's runs need and makes the transfer, once its device work is done.
void Pump::Loop::begin(Active& active, std::uint32_t id) {
  auto& order = *active.order;
  if (order.cancelled.load())
    return finish(active, cancelled_error(order.spec.direction, order.spec));
  if (order.ready) {
    const auto ready = order.ready();
    if (!ready) return finish(active, ready.error());
    if (!*ready) {
      if (now_ns() < order.spec.deadline_ns) return;
      return finish(active,
                    deadline_error(to_string(order.spec.direction),
                                   order.spec.files.empty() ? "" : order.spec.files.front().path,
                                   "the deadline passed while work on the stream went on"));
    }
  }
  Routes routes;
  const auto needed = needs_of(order.spec, order.space);
  if (needed.pinned_cache) {
    auto opened = use_station(active, {order.space, order.device, false, true});
    if (!opened) return finish(active, opened.error());
    routes.buffered[index(Route::pinned_cache)] = *opened;
  }
  if (needed.vendor) {
    auto opened = use_station(active, {order.space, order.device, true, false, true});
    if (!opened) return finish(active, opened.error());
    routes.direct[index(Route::nvfs)] = routes.direct[index(Route::p2pdma)] = *opened;
  }
  for (const bool direct_io : {false, true}) {
    if (!needed.storage[direct_io]) continue;
    // The CPU reaches peer memory too: transports of host memory move it.
    const auto space = order.space == SpaceKind::peer ? SpaceKind::host : order.space;
    auto opened =
        use_station(active, {space, order.device, space == SpaceKind::host && direct_io, false});
    if (!opened) return finish(active, opened.error());
    auto& table = direct_io ? routes.direct : routes.buffered;
    // Only the routes that these transports are: nothing stands in for another route.
    if (order.space == SpaceKind::peer) {
      table[index(Route::buffered)] = table[index(Route::p2pdma)] = *opened;
    } else if (order.space == SpaceKind::host) {
      table[index(Route::buffered)] = table[index(Route::direct_host)] = *opened;
    } else {
      table[index(Route::staged)] = *opened;
    }
  }
  active.transfer = std::make_unique<Transfer>(std::move(order.spec), routes, id);
}

// Opened, or open already; the transfer's until it is finished.
Result<transport::Transport*> Pump::Loop::use_station(Active& active, const TransportKey& key) {
  auto found = station(key, *active.order);
  if (!found) return found.error();
  active.stations.push_back(*found);
  ++(*found)->users;
  return (*found)->transport.get();
}

Result<Pump::Loop::Station*> Pump::Loop::station(const TransportKey& key, const Order& order) {
  for (auto& station : stations) {
    if (station->key == key && !station->broken) return station.get();
  }
  auto opened = open_transport(key, order.device_space, *wake);
  if (!opened) return opened.error();
  stations.push_back(std::make_unique<Station>(Station{key, std::move(*opened)}));
  return stations.back().get();
}

void Pump::Loop::report_progress(Active& active, std::uint64_t now) {
  if (!active.order->on_progress || now < active.next_progress_ns) return;
  active.next_progress_ns = now + progress_interval_ns;
  tell(active.order->on_progress, active.transfer->moved_bytes());
}

void Pump::Loop::finish(Active& active, std::optional<Error> error) {
  Drained drained{active.transfer.get(), std::move(error), 0, 0};
  for (auto* station : active.stations) {
    --station->users;
    if (active.transfer && !active.transfer->used(*station->transport)) continue;
    const auto& capabilities = station->transport->capabilities();
    drained.threads = std::max(drained.threads, capabilities.threads);
    drained.pinned_bytes = std::max(drained.pinned_bytes, capabilities.pinned_bytes);
  }
  auto order = std::move(active.order);
  const auto transfer = std::move(active.transfer);
  active = {};
  if (order->on_progress && transfer) tell(order->on_progress, transfer->moved_bytes());
  auto on_drained = std::move(order->on_drained);
  order.reset();
  --orders;
  on_drained(drained);
  worked = true;
}

void Pump::Loop::close_broken() {
  std::erase_if(stations,
                [](const auto& station) { return station->broken && station->users == 0; });
}

std::uint64_t Pump::Loop::wait_limit_ns(std::uint64_t now) const {
  std::uint64_t limit = UINT64_MAX;
  if (keep_share_ns != UINT64_MAX) limit = keep_share_ns > now ? keep_share_ns - now : 0;
  for (const auto& active : actives) {
    if (!active.order) continue;
    if (!active.transfer) limit = std::min(limit, ready_poll_interval_ns);
    for (const auto* station : active.stations) {
      const auto interval = station->transport->capabilities().poll_interval_ns;
      if (interval > 0) limit = std::min(limit, interval);
    }
    if (!active.transfer) continue;
    const auto deadline = active.transfer->deadline_ns();
    if (deadline != UINT64_MAX) {
      limit = std::min(limit, deadline > now ? deadline - now : ready_poll_interval_ns);
    }
  }
  return limit;
}

Result<std::unique_ptr<Pump>> Pump::start(OpenTransport open_transport,
                                          std::shared_ptr<CopierShare> share) {
  auto loop = std::make_shared<Loop>(std::move(open_transport), std::move(share));
  auto wake = transport::Wake::create();
  if (!wake) return wake.error();
  loop->wake = std::move(*wake);
  std::unique_ptr<Pump> pump(new Pump(loop));
  std::optional<Error> failed;
  try {
    const os::SignalsBlocked blocked;
    pump->thread_ = std::thread([loop] { loop->run(); });
  } catch (const std::system_error& error) {
    failed = Error{ErrorKind::out_of_memory,
                   ErrorOrigin::system,
                   error.code().value(),
                   "start the thread that drives transfers",
                   "",
                   {},
                   error.code().message(),
                   "raise the limit of threads (ulimit -u), or use transfers below 256 KiB"};
  } catch (const std::bad_alloc&) {
    failed = out_of_memory_error(Direction::read);
  }
  if (failed) return *failed;
  return pump;
}

Pump::Pump(std::shared_ptr<Loop> loop) : loop_(std::move(loop)) {}

Pump::~Pump() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(loop_->mutex);
    loop_->stopping = true;
  }
  loop_->wake->signal();
  on_own_thread() ? thread_.detach() : thread_.join();
}

void Pump::submit(std::shared_ptr<Order> order) {
  {
    const std::lock_guard lock(loop_->mutex);
    loop_->inbox.push_back(std::move(order));
    ++loop_->orders;
  }
  loop_->wake->signal();
}

bool Pump::idle() const { return loop_->orders.load() == 0; }

void Pump::wake() { loop_->wake->signal(); }

}  // namespace straightway::drive
