#pragma once
// The edge of the C ABI: the handles, sized structs in and out, and the one place where exceptions
// and errors become a status.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>

#include "straightway/context.hpp"
#include "straightway/file.hpp"
#include "straightway/plan.hpp"
#include "straightway/receipt.hpp"
#include "straightway/straightway.h"

struct sw_context {
  std::shared_ptr<straightway::Context> context;
};

struct sw_file {
  straightway::File file;
  std::string path;  // outlives the open file
};

struct sw_pin {
  straightway::Pin pin;
};

struct sw_job {
  straightway::Job job;
};

// A text that is made when it is first asked for.
class LazyText {
 public:
  template <class Make>
  const char* get(Make make) const {
    std::call_once(once_, [&] { text_ = make(); });
    return text_.c_str();
  }

 private:
  mutable std::once_flag once_;
  mutable std::string text_;
};

struct sw_receipt {
  explicit sw_receipt(straightway::Receipt r) : value(std::move(r)) {}
  straightway::Receipt value;
  LazyText text, json;
};

struct sw_plan {
  explicit sw_plan(straightway::Plan p) : value(std::move(p)) {}
  straightway::Plan value;
  LazyText text, json;
};

namespace straightway::c_edge {

// No struct of any version is larger: a struct_size beyond it is a wild value, not a newer header.
inline constexpr std::uint32_t largest_struct_bytes = 4096;

// The size of each struct in the first version that had it; never changes.
template <class T>
inline constexpr std::uint32_t first_bytes = 0;
template <>
inline constexpr std::uint32_t first_bytes<sw_error> = 1056;
template <>
inline constexpr std::uint32_t first_bytes<sw_context_options> = 56;
template <>
inline constexpr std::uint32_t first_bytes<sw_open_options> = 16;
template <>
inline constexpr std::uint32_t first_bytes<sw_call_options> = 88;
template <>
inline constexpr std::uint32_t first_bytes<sw_receipt_summary> = 168;
template <>
inline constexpr std::uint32_t first_bytes<sw_route_share> = 48;
template <>
inline constexpr std::uint32_t first_bytes<sw_plan_run> = 48;

Error invalid(std::string attempted, std::string why, std::string advice = {});
Error bad_size(const char* name, std::uint32_t struct_size);
Error too_new(const char* name);
bool all_zero(const std::byte* bytes, std::size_t size_bytes);

template <class T>
bool right_size(const T& sized) {
  return sized.struct_size >= first_bytes<T> && sized.struct_size <= largest_struct_bytes;
}

// The caller's options as this library knows them; the defaults for NULL.
template <class T>
Result<T> take(const T* given, const char* name) {
  static_assert(std::is_trivially_copyable_v<T> && first_bytes<T> != 0);
  T taken{};
  if (given == nullptr) return taken;
  if (!right_size(*given)) return bad_size(name, given->struct_size);
  const auto* bytes = reinterpret_cast<const std::byte*>(given);
  const std::size_t size = given->struct_size;
  if (size > sizeof(T) && !all_zero(bytes + sizeof(T), size - sizeof(T))) return too_new(name);
  std::memcpy(&taken, bytes, std::min(size, sizeof(T)));
  return taken;
}

// Copies as much of value as the caller has room for; the rest of the caller's struct is zero.
template <class T>
Result<void> give(T* to, T value, const char* name) {
  static_assert(std::is_trivially_copyable_v<T> && first_bytes<T> != 0);
  if (to == nullptr) return invalid("fill", std::string(name) + " is NULL");
  if (!right_size(*to)) return bad_size(name, to->struct_size);
  const std::size_t size = to->struct_size;
  value.struct_size = to->struct_size;
  std::memset(to, 0, size);
  std::memcpy(to, &value, std::min(size, sizeof(T)));
  return {};
}

// Writes into the caller's error without allocating; to may be NULL.
sw_status report(sw_error* to, const Error& error) noexcept;
sw_status report(sw_error* to, ErrorKind kind, const char* message) noexcept;
sw_status report_success(sw_error* to) noexcept;
// The status for the exception being handled.
sw_status report_exception(sw_error* to) noexcept;

// Runs body, a Result<void>(), and lets nothing but a status out.
template <class Body>
sw_status guarded(sw_error* error, Body body) noexcept {
  if (error != nullptr && !right_size(*error)) return SW_INVALID_ARGUMENT;
  try {
    const Result<void> result = body();
    return result.ok() ? report_success(error) : report(error, result.error());
  } catch (...) {  // the edge: a C caller has nowhere to catch it
    return report_exception(error);
  }
}

// The same for a getter, which has no status: fallback stands for any failure.
template <class Value, class Body>
Value guarded_getter(Value fallback, Body body) noexcept {
  try {
    return body();
  } catch (...) {  // the edge, as above
    return fallback;
  }
}

// NULL means the process-default context.
inline std::shared_ptr<Context> context_of(const sw_context* context) {
  return context == nullptr ? nullptr : context->context;
}

// Words. 0 is "not set" in options; nullopt inside the Result.
Result<std::optional<Policy>> policy_of(sw_policy policy);
Result<std::optional<Cache>> cache_of(sw_cache cache);
Result<std::optional<Demand>> demand_of(sw_demand demand);
Result<Sync> sync_of(sw_sync sync);
Result<Door> door_of(sw_door door);
Result<Direction> direction_of(sw_direction direction);
Result<SpaceKind> space_of(sw_space space);
Result<Route> route_of(sw_route route);

// The defaults for NULL.
Result<ContextOptions> context_options_of(const sw_context_options* given);
Result<OpenOptions> open_options_of(const sw_open_options* given);
Result<CallOptions> call_options_of(const sw_call_options* given);
Result<CallOptions> call_options_of(const sw_call_options& taken);

}  // namespace straightway::c_edge
