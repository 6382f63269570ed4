#include "memory/cuda_lane.hpp"

#include "memory/cuda_pinned.hpp"

namespace straightway::memory::cuda {
namespace {

// Made with the lane, so that its first copies cost what the later ones do.
constexpr int first_events = 8;
// A look costs nothing, a query about 1 us; after an error only the query tells.
constexpr std::uint32_t looks_per_query = 64;
constexpr std::size_t flag_page_bytes = 4096;

}  // namespace

Result<std::unique_ptr<Lane>> CopyLane::open(std::shared_ptr<Devices> devices, int device) {
  auto page = RegisteredMemory::make(devices, device, flag_page_bytes);
  std::unique_ptr<CopyLane> lane;
  auto opened = devices->in_context(device, "open a copy stream", [&](Context context) {
    lane.reset(new CopyLane(devices, device));
    lane->context_ = context;
    if (page) lane->flag_ = Flag(devices->driver(), (*page)->data());
    return lane->create();
  });
  if (!opened) return opened.error();
  if (page) lane->page_ = std::move(*page);
  devices->add_stream(lane->context_, lane->stream_);
  return std::unique_ptr<Lane>(std::move(lane));
}

Status CopyLane::create() {
  Status status = devices_->driver().stream_create(&stream_, stream_non_blocking);
  if (status == success && flag_.usable()) {
    status = flag_.write(devices_->driver(), stream_, 0);
    if (status == success) return success;
    if (status == not_supported) status = success;
  }
  for (int i = 0; i < first_events && status == success; ++i) {
    Event event = nullptr;
    status = devices_->driver().event_create(&event, event_disable_timing);
    if (status == success) spare_.push_back(event);
  }
  return status;
}

CopyLane::~CopyLane() {
  if (devices_->forked()) return;
  if (stream_ != nullptr) devices_->remove_stream(stream_);
  const Driver& driver = devices_->driver();
  const Scope scope(driver, context_);
  if (scope.status() != success) return;  // the context took its streams and events with it
  if (stream_ != nullptr) driver.stream_synchronize(stream_);
  for (const Marker& marker : running_) driver.event_destroy(marker.event);
  for (const Event event : spare_) driver.event_destroy(event);
  if (stream_ != nullptr) driver.stream_destroy(stream_);
}

Result<std::uint64_t> CopyLane::copy(Direction direction, std::uint64_t device_address, void* host,
                                     std::size_t size_bytes) {
  if (auto parent = devices_->check_fork("copy to or from the GPU"); !parent) return parent.error();
  if (error_) return *error_;
  const Status status = issue(direction, device_address, host, size_bytes);
  if (status == success) return ++issued_;
  return fail(status, "copy " + std::to_string(size_bytes) + " bytes " +
                          (direction == Direction::read ? "to " : "from ") + name());
}

Status CopyLane::issue(Direction direction, std::uint64_t device_address, void* host,
                       std::size_t size_bytes) {
  const Driver& driver = devices_->driver();
  const Scope scope(driver, context_);
  if (scope.status() != success) return scope.status();
  // First what can fail for want of memory: nothing is to be in flight then.
  if (const Status status = prepare_marker(); status != success) return status;
  const Status status = direction == Direction::read
                            ? driver.copy_to_device(device_address, host, size_bytes, stream_)
                            : driver.copy_to_host(host, device_address, size_bytes, stream_);
  if (status == success) return mark();
  if (!flag_.usable()) drop_marker();
  return status;
}

Status CopyLane::prepare_marker() {
  if (flag_.usable()) return success;
  if (spare_.empty()) {
    spare_.reserve(running_.size() + 1);
    Event event = nullptr;
    const Status status = devices_->driver().event_create(&event, event_disable_timing);
    if (status != success) return status;
    spare_.push_back(event);
  }
  running_.push_back({issued_ + 1, spare_.back()});
  spare_.pop_back();
  return success;
}

void CopyLane::drop_marker() {
  spare_.push_back(running_.back().event);
  running_.pop_back();
}

// Behind the copy just queued.
Status CopyLane::mark() {
  const Driver& driver = devices_->driver();
  return flag_.usable() ? flag_.write(driver, stream_, static_cast<std::uint32_t>(issued_ + 1))
                        : driver.event_record(running_.back().event, stream_);
}

Result<std::uint64_t> CopyLane::poll() {
  if (auto parent = devices_->check_fork("wait for copies of the GPU"); !parent) {
    return parent.error();
  }
  if (error_) return *error_;
  if (done_ == issued_) return done_;
  const Status status = flag_.usable() ? look() : look_at_events();
  if (status == success || status == not_ready) return done_;
  return fail(status, "copy to or from " + name());
}

Status CopyLane::look() {
  const auto more = flag_.value() - static_cast<std::uint32_t>(done_);
  done_ += more;
  if (more > 0) looks_ = 0;
  if (more > 0 || ++looks_ % looks_per_query != 0) return success;
  const Scope scope(devices_->driver(), context_);
  return scope.status() == success ? devices_->driver().stream_query(stream_) : scope.status();
}

Status CopyLane::look_at_events() {
  const Driver& driver = devices_->driver();
  const Scope scope(driver, context_);
  Status status = scope.status();
  while (status == success && !running_.empty()) {
    status = driver.event_query(running_.front().event);
    if (status != success) break;
    done_ = running_.front().ticket;
    spare_.push_back(running_.front().event);
    running_.pop_front();
  }
  return status;
}

// From here on the lane is dead, and nothing of it is in flight.
Error CopyLane::fail(Status status, std::string attempted) {
  const Driver& driver = devices_->driver();
  error_ = driver_error(driver, status, std::move(attempted));
  {
    const Scope scope(driver, context_);
    if (scope.status() == success) driver.stream_synchronize(stream_);
  }
  if (context_is_lost(status)) devices_->forget(device_, context_);
  return *error_;
}

}  // namespace straightway::memory::cuda
