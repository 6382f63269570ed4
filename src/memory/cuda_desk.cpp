#include "memory/cuda_desk.hpp"

#include <chrono>
#include <thread>

#include "memory/cuda_pinned.hpp"
#include "os/pause.hpp"

namespace straightway::memory::cuda {
namespace {

constexpr std::size_t page_bytes = 4096;
// 1 MiB takes 20 us, and who waits longer waits for the user's own work.
constexpr auto looks_before_nap = std::chrono::microseconds(100);
constexpr auto nap = std::chrono::microseconds(20);
constexpr int naps_per_query = 50;

}  // namespace

Result<std::unique_ptr<Desk>> CopyDesk::open(std::shared_ptr<Devices> devices, int device,
                                             std::size_t size_bytes) {
  const auto whole = (size_bytes + page_bytes - 1) / page_bytes * page_bytes;
  auto pinned = RegisteredMemory::make(devices, device, whole + page_bytes);
  if (!pinned) return pinned.error();
  std::unique_ptr<CopyDesk> desk(new CopyDesk(devices, device, whole));
  auto made = devices->in_context(device, "prepare small copies", [&](Context) {
    desk->flag_ = Flag(devices->driver(), (*pinned)->data() + whole);
    return success;
  });
  if (!made) return made.error();
  desk->pinned_ = std::move(*pinned);
  return std::unique_ptr<Desk>(std::move(desk));
}

// Where it fails nothing of it is in flight.
Status CopyDesk::queue(Direction direction, std::uint64_t device_address, std::byte* host,
                       std::size_t size_bytes, Stream stream) {
  const Driver& driver = devices_->driver();
  Status status = direction == Direction::read
                      ? driver.copy_to_device(device_address, host, size_bytes, stream)
                      : driver.copy_to_host(host, device_address, size_bytes, stream);
  if (status != success) return status;
  if (flag_.usable()) {
    status = flag_.write(driver, stream, ++copies_);
    if (status == success) return success;
  }
  const Status waited = driver.stream_synchronize(stream);
  return status == success || status == not_supported ? waited : status;
}

// After an error of the device the flag never comes, and the stream says so.
Status CopyDesk::ask(const UserStream& user) {
  const Driver& driver = devices_->driver();
  const Scope scope(driver, user.context);
  CaptureStatus capture = capture_none;
  if (scope.status() != success) return scope.status();
  const Status status = driver.stream_is_capturing(user.stream, &capture);
  // A capture that began behind the copy is not disturbed by a question.
  if (status != success || capture != capture_none) {
    return status == stream_capture_implicit ? success : status;
  }
  const Status answer = driver.stream_query(user.stream);
  return answer == not_ready ? success : answer;
}

Status CopyDesk::wait(const UserStream& user) {
  const auto done = [this] { return !flag_.usable() || flag_.value() == copies_; };
  if (os::look_for(looks_before_nap, done)) return success;
  for (int naps = 1; !done(); ++naps) {
    std::this_thread::sleep_for(nap);
    if (naps % naps_per_query != 0) continue;
    if (const Status status = ask(user); status != success) return status;
  }
  return success;
}

bool CopyDesk::is_idle(std::optional<void*> stream) {
  bool idle = false;
  const auto query = [&](const UserStream& user) {
    const Status status = devices_->driver().stream_query(user.stream);
    idle = status == success;
    return status == not_ready ? success : status;
  };
  return on_user_stream(*devices_, device_, stream, "look at the stream of", query).ok() && idle;
}

Result<void> CopyDesk::copy_between(Direction direction, std::uint64_t device_address,
                                    std::byte* host, std::size_t size_bytes,
                                    std::optional<void*> stream) {
  const char* attempted = direction == Direction::read ? "copy to" : "copy from";
  auto queued = on_user_stream(*devices_, device_, stream, attempted, [&](const UserStream& user) {
    return queue(direction, device_address, host, size_bytes, user.stream);
  });
  if (!queued) return queued.error();
  const Status status = wait(*queued);
  if (status == success) return {};
  if (context_is_lost(status)) devices_->forget(device_, queued->context);
  return driver_error(devices_->driver(), status,
                      "copy " + std::to_string(size_bytes) + " bytes " +
                          (direction == Direction::read ? "to" : "from") +
                          " cuda:" + std::to_string(device_));
}

}  // namespace straightway::memory::cuda
