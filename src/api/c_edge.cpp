#include "api/c_edge.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

namespace straightway::c_edge {
namespace {

sw_status status_of(ErrorKind kind) { return static_cast<sw_status>(kind) + 1; }

static_assert(static_cast<int>(ErrorKind::invalid_argument) + 1 == SW_INVALID_ARGUMENT);
static_assert(static_cast<int>(ErrorKind::not_found) + 1 == SW_NOT_FOUND);
static_assert(static_cast<int>(ErrorKind::wrong_file_type) + 1 == SW_WRONG_FILE_TYPE);
static_assert(static_cast<int>(ErrorKind::permission) + 1 == SW_PERMISSION);
static_assert(static_cast<int>(ErrorKind::closed) + 1 == SW_CLOSED);
static_assert(static_cast<int>(ErrorKind::no_space) + 1 == SW_NO_SPACE);
static_assert(static_cast<int>(ErrorKind::out_of_memory) + 1 == SW_OUT_OF_MEMORY);
static_assert(static_cast<int>(ErrorKind::too_many_files) + 1 == SW_TOO_MANY_FILES);
static_assert(static_cast<int>(ErrorKind::io) + 1 == SW_IO);
static_assert(static_cast<int>(ErrorKind::short_transfer) + 1 == SW_SHORT_TRANSFER);
static_assert(static_cast<int>(ErrorKind::route_refused) + 1 == SW_ROUTE_REFUSED);
static_assert(static_cast<int>(ErrorKind::evidence_missing) + 1 == SW_EVIDENCE_MISSING);
static_assert(static_cast<int>(ErrorKind::device) + 1 == SW_DEVICE);
static_assert(static_cast<int>(ErrorKind::unsupported) + 1 == SW_UNSUPPORTED);
static_assert(static_cast<int>(ErrorKind::cancelled) + 1 == SW_CANCELLED);
static_assert(static_cast<int>(ErrorKind::deadline_exceeded) + 1 == SW_DEADLINE_EXCEEDED);
static_assert(static_cast<int>(ErrorKind::forked) + 1 == SW_FORKED);
static_assert(static_cast<int>(ErrorOrigin::cufile) == SW_ORIGIN_CUFILE);
static_assert(static_cast<int>(Route::buffered) == SW_ROUTE_BUFFERED);
static_assert(route_count == SW_ROUTE_COUNT);
static_assert(static_cast<int>(Witness::vendor_library) == SW_WITNESS_VENDOR_LIBRARY);
static_assert(static_cast<int>(Scope::machine) == SW_SCOPE_MACHINE);
static_assert(static_cast<int>(EvidenceKind::claimed) == SW_EVIDENCE_CLAIMED);

void set_message(sw_error& to, std::string_view message) {
  const std::size_t room = sizeof to.message - 1;
  const std::size_t size = std::min(message.size(), room);
  std::memcpy(to.message, message.data(), size);
  to.message[size] = '\0';
  if (message.size() > room) std::memcpy(to.message + room - 3, "...", 3);
}

// A fresh one of the caller's size: what a newer header has beyond ours is zero.
void clear(sw_error& to) {
  const std::uint32_t size = to.struct_size;
  std::memset(&to, 0, size);
  to.struct_size = size;
}

Error unknown(const char* option, std::int32_t value) {
  return invalid(std::string("use ") + option + " " + std::to_string(value),
                 "there is no such value", "use one of the constants in straightway.h");
}

// Value of an option word whose constants are first, first + 1, ...
template <class Enum>
Result<Enum> word(const char* option, std::int32_t value, std::int32_t first, Enum last) {
  if (value < first || value > first + static_cast<std::int32_t>(last))
    return unknown(option, value);
  return static_cast<Enum>(value - first);
}

template <class Enum>
Result<std::optional<Enum>> optional_word(const char* option, std::int32_t value, Enum last) {
  if (value == 0) return std::optional<Enum>{};
  Result<Enum> found = word(option, value, 1, last);
  if (!found) return found.error();
  return std::optional<Enum>{*found};
}

}  // namespace

Error invalid(std::string attempted, std::string why, std::string advice) {
  Error error;
  error.kind = ErrorKind::invalid_argument;
  error.attempted = std::move(attempted);
  error.why = std::move(why);
  error.advice = std::move(advice);
  return error;
}

Error bad_size(const char* name, std::uint32_t struct_size) {
  return invalid(std::string("use ") + name,
                 "its struct_size is " + std::to_string(struct_size) + ", which no version had",
                 "set it with SW_INIT");
}

Error too_new(const char* name) {
  Error error =
      invalid(std::string("use ") + name,
              "it sets fields that this library (" + std::string(version()) + ") does not know",
              "load a newer libstraightway, or leave them zero");
  error.kind = ErrorKind::unsupported;
  return error;
}

bool all_zero(const std::byte* bytes, std::size_t size_bytes) {
  return std::all_of(bytes, bytes + size_bytes, [](std::byte b) { return b == std::byte{0}; });
}

sw_status report(sw_error* to, ErrorKind kind, const char* message) noexcept {
  if (to != nullptr) {
    clear(*to);
    to->status = status_of(kind);
    set_message(*to, message);
  }
  return status_of(kind);
}

sw_status report(sw_error* to, const Error& error) noexcept {
  if (to == nullptr) return status_of(error.kind);
  clear(*to);
  to->status = status_of(error.kind);
  to->origin = static_cast<std::int32_t>(error.origin);
  to->code = error.code;
  to->offset = error.offset.value_or(0);
  to->has_offset = error.offset.has_value() ? 1 : 0;
  try {
    set_message(*to, error.message());
  } catch (const std::bad_alloc&) {
    set_message(*to, "no memory left for the message of this error");
  }
  return to->status;
}

sw_status report_success(sw_error* to) noexcept {
  if (to != nullptr) clear(*to);
  return SW_OK;
}

sw_status report_exception(sw_error* to) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return report(to, ErrorKind::out_of_memory, "out of host memory; nothing is in flight");
  } catch (const ErrorException& exception) {
    return report(to, exception.error());
  } catch (const std::system_error& exception) {
    return report(to, ErrorKind::unsupported, exception.what());
  } catch (const std::exception& exception) {
    return report(to, ErrorKind::unsupported, exception.what());
  } catch (...) {
    return report(to, ErrorKind::unsupported, "an exception of unknown type");
  }
}

Result<std::optional<Policy>> policy_of(sw_policy policy) {
  return optional_word("policy", policy, Policy::staged);
}

Result<std::optional<Cache>> cache_of(sw_cache cache) {
  return optional_word("cache", cache, Cache::bypass);
}

Result<std::optional<Demand>> demand_of(sw_demand demand) {
  return optional_word("evidence", demand, Demand::observed);
}

Result<Sync> sync_of(sw_sync sync) { return word("sync", sync, 0, Sync::full); }

Result<Door> door_of(sw_door door) { return word("door", door, 0, Door::cufile); }

Result<Direction> direction_of(sw_direction direction) {
  return word("direction", direction, 0, Direction::write);
}

Result<SpaceKind> space_of(sw_space space) { return word("space", space, 0, SpaceKind::cuda); }

Result<Route> route_of(sw_route route) { return word("route", route, 0, Route::buffered); }

}  // namespace straightway::c_edge
