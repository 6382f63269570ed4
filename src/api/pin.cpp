// Pins of files, at the front door.

#include <algorithm>
#include <mutex>
#include <utility>

#include "api/call.hpp"
#include "api/open_file.hpp"
#include "api/planning.hpp"
#include "memory/file_pins.hpp"
#include "os/pinnable.hpp"

namespace straightway {

struct Pin::State {
  std::weak_ptr<Engine> engine;
  std::uint32_t generation = 0;
  std::shared_ptr<memory::FilePins> pins;
  std::uint64_t pin = 0;
  std::uint64_t size_bytes = 0;

  // What is the parent's stays the parent's.
  bool is_parents(const std::shared_ptr<Engine>& alive) const {
    return alive->generation() != generation;
  }
};

namespace {

// Beside the caller's own thread; more gain nothing (measured).
constexpr std::uint32_t pin_helpers = 2;

Error pin_refused(const OpenFile& file, ErrorKind kind, std::string why, std::string advice) {
  return {kind,           ErrorOrigin::straightway, 0, "pin", file.facts->path, {},
          std::move(why), std::move(advice)};
}

Result<void> check_ranges(const OpenFile& file, const std::vector<FileRange>& ranges) {
  for (const auto& range : ranges) {
    if (fits_a_file(range)) continue;
    auto error = pin_refused(file, ErrorKind::invalid_argument,
                             "offset and size end beyond 2^63 - 1, or are negative",
                             "give ranges within the file");
    error.offset = range.offset;
    return error;
  }
  return {};
}

Result<void> check_file(const OpenFile& file) {
  if (file.engine->is_forked_child()) {
    auto error = forked_error("pin");
    error.path = file.facts->path;
    return error;
  }
  if (file.engine->on_own_thread()) return calls_itself_error("pin a file");
  if (file.door != Door::straightway) {
    return pin_refused(file, ErrorKind::unsupported,
                       "it was opened at a door whose rules know no pins",
                       "open it at Straightway's own");
  }
  return file.allows(Direction::read);
}

std::vector<FileRange> whole_file() {
  return {{0, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())}};
}

Result<Pin> pin_open_file(OpenFile& file, const PinOptions& options) {
  if (auto checked = check_file(file); !checked) return checked.error();
  const auto ranges = options.ranges.value_or(whole_file());
  if (auto checked = check_ranges(file, ranges); !checked) return checked.error();
  auto pins = file.make_pins(options.device);
  if (!pins) return pins.error();
  auto added = (*pins)->add(ranges, options.device);
  if (!added) {
    auto error = added.error();
    error.path = file.facts->path;
    if (error.attempted == "look at") error.attempted = "pin";
    return error;
  }
  auto state = std::make_shared<Pin::State>();
  state->engine = file.engine;
  state->generation = file.engine->generation();
  state->pins = std::move(*pins);
  state->pin = added->pin;
  state->size_bytes = added->size_bytes;
  return Pin(std::move(state));
}

}  // namespace

Pin& Pin::operator=(Pin&& other) noexcept {
  if (this != &other) {
    release();
    state_ = std::move(other.state_);
  }
  return *this;
}

Pin::~Pin() { release(); }

void Pin::release() {
  if (!state_) return;
  // Without an engine there is no file either, and a closed file has let everything go.
  const auto alive = state_->engine.lock();
  if (!alive || state_->is_parents(alive)) return;
  state_->pins->remove(state_->pin, !alive->on_own_thread());
}

bool Pin::holds() const {
  if (!state_) return false;
  const auto alive = state_->engine.lock();
  return alive && !state_->is_parents(alive) && state_->pins->has(state_->pin);
}

std::uint64_t Pin::size_bytes() const { return state_ ? state_->size_bytes : 0; }

Result<Pin> File::pin(const PinOptions& options) const {
  const FileUse use(open_);
  if (!use) {
    auto error = closed_error(Direction::read, path());
    error.attempted = "pin";
    return error;
  }
  return pin_open_file(*open_, options);
}

std::shared_ptr<memory::FilePins> OpenFile::pins() const {
  if (!has_pins_.load(std::memory_order_acquire)) return nullptr;
  return pins_;
}

Result<std::shared_ptr<memory::FilePins>> OpenFile::make_pins(std::int32_t device) {
  const std::lock_guard lock(pins_mutex_);
  if (pins_) return pins_;
  if (auto why = os::why_not_pinnable(fd_.get(), *facts); !why.empty()) {
    return pin_refused(*this, ErrorKind::unsupported, why, "read it without a pin");
  }
  const auto space = engine->device_space();
  if (!space) {
    return pin_refused(
        *this, ErrorKind::unsupported,
        "there is no GPU to pin it for (" + engine->machine(true)->cuda_why_not + ")",
        "read it without a pin");
  }
  if (auto can = space->can_hold_pages(device); !can) {
    auto error = can.error();
    error.path = facts->path;
    return error;
  }
  auto made = memory::FilePins::make(
      space, engine->pin_budget(), fd_.get(),
      [alive = std::weak_ptr(engine), path = facts->path](const std::string& why) {
        if (const auto target = alive.lock()) {
          target->warn("gave up the pin of '" + path + "': " + why +
                       "; its reads go through the ring until it is pinned again");
        }
      },
      {.helpers = std::min(pin_helpers, engine->thread_budget() - 1)});
  if (!made) {
    auto error = made.error();
    error.attempted = "pin";
    error.path = facts->path;
    return error;
  }
  pins_ = std::move(*made);
  has_pins_.store(true, std::memory_order_release);
  return pins_;
}

}  // namespace straightway
