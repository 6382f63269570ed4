#pragma once
// The pump: the one thread of a Context that drives transfers, and the one place that blocks. It
// opens transports when the first transfer needs them, on its own thread.

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "drive/copier_share.hpp"
#include "drive/transfer.hpp"
#include "memory/space.hpp"
#include "straightway/result.hpp"
#include "transport/transport.hpp"
#include "transport/wake.hpp"

namespace straightway::drive {

// What a finished transfer tells besides its bytes.
struct Drained {
  const Transfer* transfer = nullptr;  // null: it never began, see error
  std::optional<Error> error;
  std::uint32_t threads = 0;
  std::uint64_t pinned_bytes = 0;
};

// One transfer for the pump. Whoever submitted it may cancel and look at moved_bytes from any
// thread; the functions are called on the pump's thread and must not block.
struct Order {
  TransferSpec spec;
  SpaceKind space = SpaceKind::host;  // of all its memory
  std::int32_t device = -1;
  std::shared_ptr<memory::Space> device_space;  // null for host memory
  // Asked until it says true (or an error) before the first segment is submitted: work on a device
  // that must be done first. Empty: at once.
  std::function<Result<bool>()> ready;
  std::function<void(std::uint64_t moved_bytes)> on_progress;
  std::function<void(const Drained&)>
      on_drained;  // once; nothing is in flight any more; throws not
  std::atomic<bool> cancelled{false};
  std::atomic<std::uint64_t> moved_bytes{0};
};

// Which transport: that of host memory, or of a device the staged one, that of pinned pages, or the
// vendor's library.
struct TransportKey {
  SpaceKind space = SpaceKind::host;
  std::int32_t device = -1;
  bool direct_io = false;
  bool pinned_cache = false;
  bool vendor = false;
  bool operator==(const TransportKey&) const = default;
};

class Pump {
 public:
  using OpenTransport = std::function<Result<std::unique_ptr<transport::Transport>>(
      const TransportKey& key, const std::shared_ptr<memory::Space>& device_space,
      transport::Wake& wake)>;

  // share: told of the large transfers; null: nobody is.
  static Result<std::unique_ptr<Pump>> start(OpenTransport open_transport,
                                             std::shared_ptr<CopierShare> share = nullptr);
  // Drains all orders. From the pump's own thread (a callback released the last reference) it only
  // asks for the end.
  ~Pump();
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  void submit(std::shared_ptr<Order> order);
  // Whether it has no order now.
  bool idle() const;
  // After a change of Order::cancelled.
  void wake();
  bool on_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  struct Loop;
  explicit Pump(std::shared_ptr<Loop> loop);
  std::shared_ptr<Loop> loop_;
  std::thread thread_;
};

// Made without memory, for when there is none left.
Error out_of_memory_error(Direction direction);

// CLOCK_MONOTONIC.
std::uint64_t now_ns();

}  // namespace straightway::drive
