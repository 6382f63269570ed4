#pragma once
// A queue of copies on a private stream.

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "memory/cuda_devices.hpp"
#include "memory/cuda_flag.hpp"
#include "memory/space.hpp"

namespace straightway::memory::cuda {

class CopyLane final : public Lane {
 public:
  static Result<std::unique_ptr<Lane>> open(std::shared_ptr<Devices> devices, int device);
  ~CopyLane() override;
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;

  Result<std::uint64_t> copy(Direction direction, std::uint64_t device_address, void* host,
                             std::size_t size_bytes) override;
  Result<std::uint64_t> poll() override;

 private:
  struct Marker {
    std::uint64_t ticket;
    Event event;
  };
  CopyLane(std::shared_ptr<Devices> devices, int device)
      : devices_(std::move(devices)), device_(device) {}
  Status create();
  Status issue(Direction direction, std::uint64_t device_address, void* host,
               std::size_t size_bytes);
  Status prepare_marker();
  void drop_marker();
  Status mark();
  Status look();
  Status look_at_events();
  Error fail(Status status, std::string attempted);
  std::string name() const { return "cuda:" + std::to_string(device_); }

  const std::shared_ptr<Devices> devices_;
  const int device_;
  Context context_ = nullptr;
  Stream stream_ = nullptr;
  std::uint64_t issued_ = 0;
  std::uint64_t done_ = 0;
  std::unique_ptr<Pinned> page_;  // of the flag
  Flag flag_;                     // the last ticket that is done
  std::uint32_t looks_ = 0;       // in vain, one after another
  std::deque<Marker> running_;    // where the flag is not usable
  std::vector<Event> spare_;
  std::optional<Error> error_;
};

}  // namespace straightway::memory::cuda
