#include "state.hpp"

#include <concepts>
#include <cstring>
#include <type_traits>

#include "straightway/file.hpp"

namespace straightway::python {
namespace {

// Each value's fields, in one place for both directions: V is the type or its const. A field that
// is left out does not compile (see Listed).
template <class V, class T>
concept Like = std::same_as<std::remove_const_t<V>, T>;

template <class Archive, Like<FileFacts> V>
auto fields(Archive& a, V& v) {
  return a(v.path, v.filesystem, v.mount_point, v.device, v.device_driver, v.is_network,
           v.is_block_device, v.direct_offset_align_bytes, v.direct_memory_align_bytes, v.dontcache,
           v.vendor_code, v.vendor_copies);
}

template <class Archive, Like<MachineFacts> V>
auto fields(Archive& a, V& v) {
  return a(v.page_bytes, v.cpus, v.quota_cpus, v.cuda_driver, v.cuda_devices, v.cuda_why_not,
           v.cuda_simulated, v.nvfs_loaded, v.nvfs_version, v.nvfs_nodes, v.vendor_library,
           v.vendor_path, v.vendor_version, v.vendor_why_not, v.vendor_cuts, v.run_udev, v.wsl,
           v.p2pdma_pages, v.uring, v.uring_why_not, v.kernel, v.routes_built);
}

template <class Archive, Like<PeerFacts> V>
auto fields(Archive& a, V& v) {
  return a(v.device, v.published, v.storage, v.bridge, v.read_trial, v.write_trial, v.trial_code,
           v.holes);
}

template <class Archive, Like<MemoryRange> V>
auto fields(Archive& a, V& v) {
  return a(v.space, v.device, v.address, v.size_bytes);
}

template <class Archive, Like<FileRange> V>
auto fields(Archive& a, V& v) {
  return a(v.offset, v.size_bytes);
}

template <class Archive, class T>
auto fields(Archive& a, Setting<T>& v) {
  return a(v.value, v.origin);
}

template <class Archive, class T>
auto fields(Archive& a, const Setting<T>& v) {
  return a(v.value, v.origin);
}

template <class Archive, Like<FrontSettings> V>
auto fields(Archive& a, V& v) {
  return a(v.compat_mode, v.threads, v.task_size_bytes, v.gds_threshold_bytes);
}

template <class Archive, Like<CufileSettings> V>
auto fields(Archive& a, V& v) {
  return a(v.parallel_io, v.max_io_threads, v.max_io_queue_depth, v.min_io_threshold_size_kb,
           v.max_request_parallelism, v.max_direct_io_size_kb, v.allow_compat_mode,
           v.force_compat_mode, v.use_pci_p2pdma);
}

template <class Archive, Like<Settings> V>
auto fields(Archive& a, V& v) {
  return a(v.policy, v.cache, v.evidence, v.threads, v.pinned_bytes, v.pin_bytes, v.ledger,
           v.vendor_library, v.front, v.cufile);
}

template <class Archive, Like<Request> V>
auto fields(Archive& a, V& v) {
  return a(v.direction, v.door, v.file, v.memory, v.file_size_bytes, v.registered,
           v.spare_memory_bytes);
}

template <class Archive, Like<Cut> V>
auto fields(Archive& a, V& v) {
  return a(v.offset, v.size_bytes, v.piece_bytes, v.count);
}

template <class Archive, Like<CacheFound> V>
auto fields(Archive& a, V& v) {
  return a(v.hot_bytes, v.cold_bytes, v.unknown_bytes);
}

template <class Archive, Like<Run> V>
auto fields(Archive& a, V& v) {
  return a(v.route, v.reason, v.file, v.segment_bytes, v.align_bytes, v.direct_io, v.cold,
           v.cold_reason, v.cold_align_bytes, v.group_bytes, v.group_segments);
}

template <class Archive, Like<LayerCounters> V>
auto fields(Archive& a, V& v) {
  return a(v.n, v.nvfs, v.p2pdma, v.posix);
}

template <class Archive, Like<FrontDecision> V>
auto fields(Archive& a, V& v) {
  return a(v.used, v.to_cufile, v.on_caller_thread, v.reason, v.tasks);
}

template <class Archive, Like<CufileDecision> V>
auto fields(Archive& a, V& v) {
  return a(v.used, v.refused, v.reason, v.parts, v.last_parts, v.counters);
}

template <class Archive, Like<Plan> V>
auto fields(Archive& a, V& v) {
  return a(v.request, v.front, v.cufile, v.runs, v.run_count, v.refused, v.failure, v.first_window,
           v.pin_bytes, v.file, v.machine, v.settings, v.peer);
}

template <class Archive, Like<Evidence> V>
auto fields(Archive& a, V& v) {
  return a(v.kind, v.witness, v.scope);
}

template <class Archive, Like<RouteShare> V>
auto fields(Archive& a, V& v) {
  return a(v.bytes, v.segments, v.reason, v.evidence);
}

template <class Archive, Like<Times> V>
auto fields(Archive& a, V& v) {
  return a(v.queued_ns, v.started_ns, v.first_byte_ns, v.done_ns);
}

template <class Archive, Like<RangeTable> V>
auto fields(Archive& a, V& v) {
  return a(v.offset, v.wanted_bytes, v.moved_bytes);
}

template <class Archive, Like<Receipt> V>
auto fields(Archive& a, V& v) {
  return a(v.direction, v.door, v.memory, v.file_offset, v.wanted_bytes, v.moved_bytes,
           v.ended_early, v.end_of_file, v.routes, v.refused, v.retries, v.fallbacks,
           v.fallback_code, v.disk_measured, v.disk_bytes, v.found, v.cold_reason, v.threads,
           v.pinned_bytes, v.pin_bytes, v.times, v.layer, v.ranges, v.file, v.machine, v.settings,
           v.peer);
}

// How many fields an aggregate has, and how many of them are listed above.
struct AnyField {
  template <class T>
  operator T() const;
};

template <class T, class... Given>
consteval std::size_t field_count() {
  if constexpr (requires { T{Given{}..., AnyField{}}; }) {
    return field_count<T, Given..., AnyField>();
  } else {
    return sizeof...(Given);
  }
}

struct Counter {
  template <class... T>
  std::integral_constant<std::size_t, sizeof...(T)> operator()(const T&...) const;
};

template <class T>
concept Listed =
    decltype(fields(std::declval<Counter&>(), std::declval<T&>()))::value == field_count<T>();

template <class T>
concept Plain = std::integral<T> || std::is_enum_v<T>;

class Writer {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (write(values), ...);
  }
  std::string bytes;

 private:
  template <Plain T>
  void write(const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void write(const std::string& text) {
    write(text.size());
    bytes += text;
  }
  void write(const std::vector<std::uint64_t>& numbers) {
    write(numbers.size());
    for (const std::uint64_t number : numbers) write(number);
  }
  template <class T, std::size_t N>
  void write(const std::array<T, N>& items) {
    for (const T& item : items) write(item);
  }
  template <class T>
  void write(const std::shared_ptr<const T>& pointer) {
    write(pointer != nullptr);
    if (pointer) write(*pointer);
  }
  template <class T>
    requires std::is_class_v<T>
  void write(const T& value) {
    static_assert(Listed<T>);
    fields(*this, value);
  }
};

// Bytes from outside: every length is checked, and the first fault stops the rest.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <class... T>
  void operator()(T&... values) {
    (read(values), ...);
  }
  bool whole() const { return good_ && rest_.empty(); }

 private:
  bool take(void* to, std::size_t size) {
    good_ = good_ && size <= rest_.size();
    if (!good_) return false;
    std::memcpy(to, rest_.data(), size);
    rest_.remove_prefix(size);
    return true;
  }
  template <Plain T>
  void read(T& value) {
    take(&value, sizeof value);
  }
  void read(bool& value) {
    unsigned char byte = 0;
    good_ = take(&byte, 1) && byte <= 1;
    value = good_ && byte == 1;
  }
  std::size_t count(std::size_t item_size) {
    std::size_t n = 0;
    good_ = take(&n, sizeof n) && n <= rest_.size() / item_size;
    return good_ ? n : 0;
  }
  void read(std::string& text) {
    const std::size_t n = count(1);
    text.assign(rest_.substr(0, n));
    rest_.remove_prefix(n);
  }
  void read(std::vector<std::uint64_t>& numbers) {
    numbers.resize(count(sizeof(std::uint64_t)));
    for (std::uint64_t& number : numbers) read(number);
  }
  template <class T, std::size_t N>
  void read(std::array<T, N>& items) {
    for (T& item : items) read(item);
  }
  template <class T>
  void read(std::shared_ptr<const T>& pointer) {
    bool there = false;
    read(there);
    if (!there) return;
    auto made = std::make_shared<T>();
    read(*made);
    pointer = std::move(made);
  }
  template <class T>
    requires std::is_class_v<T>
  void read(T& value) {
    static_assert(Listed<T>);
    fields(*this, value);
  }

  std::string_view rest_;
  bool good_ = true;
};

template <class T>
std::string header() {
  return std::string(std::is_same_v<T, Plan> ? "plan " : "receipt ") + version() + "\n";
}

template <class T>
std::string pack_value(const T& value) {
  Writer writer;
  static_assert(Listed<T>);
  writer.bytes = header<T>();
  fields(writer, value);
  return std::move(writer.bytes);
}

template <class T>
std::optional<T> unpack_value(std::string_view bytes) {
  const std::string expected = header<T>();
  if (!bytes.starts_with(expected)) return std::nullopt;
  Reader reader(bytes.substr(expected.size()));
  std::optional<T> value(std::in_place);
  fields(reader, *value);
  return reader.whole() ? value : std::nullopt;
}

}  // namespace

std::string pack(const Plan& plan) { return pack_value(plan); }
std::string pack(const Receipt& receipt) { return pack_value(receipt); }

std::optional<Plan> unpack_plan(std::string_view bytes) {
  auto plan = unpack_value<Plan>(bytes);
  if (plan && plan->run_count > run_limit) return std::nullopt;
  return plan;
}

std::optional<Receipt> unpack_receipt(std::string_view bytes) {
  return unpack_value<Receipt>(bytes);
}

}  // namespace straightway::python
