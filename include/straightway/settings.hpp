#pragma once
// What the user asked for. Each value carries its origin, because plans and receipts show both.
// Precedence: call, API, environment, file, default.

#include <cstdint>
#include <string>

#include "straightway/route.hpp"

namespace straightway {

template <class T>
struct Setting {
  T value{};
  Origin origin = Origin::built_in;
  bool operator==(const Setting&) const = default;
};

enum class CompatMode : std::uint8_t { off, on, automatic };  // KvikIO's
const char* to_string(CompatMode mode);                       // "OFF", "ON", "AUTO"

// The front layer's (KvikIO's) settings; facts and defaults: its runtime-settings page, 26.10.
struct FrontSettings {
  Setting<CompatMode> compat_mode{CompatMode::automatic};
  Setting<std::uint64_t> threads{1};
  Setting<std::uint64_t> task_size_bytes{std::uint64_t{4} << 20};
  Setting<std::uint64_t> gds_threshold_bytes{std::uint64_t{16} << 10};
  bool operator==(const FrontSettings&) const = default;
};

// The cuFile layer's settings: the keys of cufile.json that decide how a request is cut and which
// way it may go. Defaults are those of the shipped file. Sizes in KiB, as the keys are.
struct CufileSettings {
  Setting<bool> parallel_io{true};
  Setting<std::uint64_t> max_io_threads{4};
  Setting<std::uint64_t> max_io_queue_depth{128};
  Setting<std::uint64_t> min_io_threshold_size_kb{8192};
  Setting<std::uint64_t> max_request_parallelism{4};
  Setting<std::uint64_t> max_direct_io_size_kb{16384};
  Setting<bool> allow_compat_mode{true};
  Setting<bool> force_compat_mode{false};
  Setting<bool> use_pci_p2pdma{false};
  bool operator==(const CufileSettings&) const = default;
};

// Straightway's own: STRAIGHTWAY_* variables, Context options, call options.
struct Settings {
  Setting<Policy> policy{Policy::automatic};  // STRAIGHTWAY_POLICY
  Setting<Cache> cache{Cache::automatic};     // STRAIGHTWAY_CACHE
  Setting<Demand> evidence{Demand::any};      // STRAIGHTWAY_EVIDENCE
  Setting<std::uint64_t> threads{0};          // STRAIGHTWAY_THREADS; 0: chosen from the machine
  Setting<std::uint64_t> pinned_bytes{std::uint64_t{64}
                                      << 20};  // STRAIGHTWAY_PINNED_BYTES, hard limit
  // STRAIGHTWAY_PIN_BYTES: of the page cache, that all pins together may hold; hard limit. 0: a
  // quarter of the memory that was available at the first pin.
  Setting<std::uint64_t> pin_bytes{0};
  Setting<bool> ledger{true};  // STRAIGHTWAY_LEDGER: publish statistics
  // STRAIGHTWAY_VENDOR_LIBRARY: the vendor's libcufile.so.0, by absolute path. Empty: looked for
  // where the loader would; "none": never used.
  Setting<std::string> vendor_library{};
  FrontSettings front;    // KVIKIO_*, count only at the KvikIO door
  CufileSettings cufile;  // cufile.json and CUFILE_*, count only at the cuFile door
  bool operator==(const Settings&) const = default;
};

}  // namespace straightway
