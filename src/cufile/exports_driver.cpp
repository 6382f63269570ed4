// The driver, its properties and parameters.

#include "api/engine.hpp"
#include "cufile/edge.hpp"
#include "cufile/environment.hpp"
#include "cufile/registration.hpp"
#include "cufile/topology.hpp"
#include "os/system_text.hpp"
#include "plan/direct_paths.hpp"

namespace straightway::cufile {
namespace {

constexpr std::uint32_t nvme_bit = 1U << 4;  // of the status: the one target that is taken directly
constexpr std::uint32_t allow_compat_bit = 1U << 1;
constexpr std::uint32_t batch_and_dynamic_bits = 0x3;  // DYN_ROUTING, BATCH_IO
constexpr std::uint32_t streams_bit = 1U << 2;
constexpr std::uint32_t parallel_bit = 1U << 3;
constexpr std::size_t largest_cache_kb = 268435456;
constexpr int p2p_family_count = 15;  // file systems that cuFileDriverGetP2PFlags knows

std::uint32_t control_flags(const Configuration& config) {
  std::uint32_t flags = config.flag(Key::allow_compat_mode) ? allow_compat_bit : 0;
  if (config.flag(Key::use_poll_mode)) flags |= 1U;
  if (config.flag(Key::vanilla_posix_io_mode)) flags |= 1U << 2;
  if (config.flag(Key::gds_fallback_io)) flags |= 1U << 4;
  return flags;
}

std::uint32_t feature_flags(const Configuration& config) {
  const bool parallel = config.flag(Key::parallel_io) && config.number(Key::max_io_threads) > 0;
  return batch_and_dynamic_bits | (parallel ? streams_bit | parallel_bit : 0);
}

// "2.28.4"
void show_nvfs(const std::string& version, abi::Properties& out) {
  std::string_view rest = version;
  const auto number = [&] {
    return static_cast<std::uint32_t>(os::to_number(os::take_field(rest, '.')).value_or(0));
  };
  out.major_version = number();
  out.minor_version = number();
  out.status_flags |= nvme_bit;
}

// running: null while closed, where the vendor's 1.20 shows other values.
abi::Properties properties(const Session* session) {
  const Configuration standard;
  const Configuration* running = session != nullptr ? &session->config : nullptr;
  const Configuration& config = running != nullptr ? *running : standard;
  const auto number = [&](Key key) { return static_cast<std::uint32_t>(config.number(key)); };
  abi::Properties out{};
  out.poll_threshold_kb = static_cast<std::size_t>(config.number(Key::poll_mode_max_size_kb));
  out.max_direct_io_kb = number(Key::max_direct_io_size_kb);
  out.control_flags = control_flags(config);
  out.feature_flags = running != nullptr ? feature_flags(config) : 0;
  out.max_device_cache_kb = number(Key::max_device_cache_size_kb);
  out.per_buffer_cache_kb = running != nullptr ? number(Key::per_buffer_cache_size_kb) : 0;
  out.max_pinned_kb = running != nullptr ? number(Key::max_device_pinned_mem_size_kb) : 4294967292U;
  out.max_batch_io_size = number(Key::io_batchsize);
  out.max_batch_io_timeout_ms = number(Key::max_batch_io_timeout_msecs);
  const auto machine = session != nullptr ? session->context->engine()->machine(false) : nullptr;
  if (machine && plan::has_nvfs(*machine)) show_nvfs(machine->nvfs_version, out);
  return out;
}

// A size for the cache or for pinned memory.
abi::Code check_limit_kb(std::size_t size_kb) {
  if (size_kb % 4 != 0) return abi::invalid_value;
  return size_kb > largest_cache_kb ? abi::driver_unsupported_limit : abi::success;
}

}  // namespace

Driver& driver() {
  static auto* const made = new Driver(read_variable);
  return *made;
}

}  // namespace straightway::cufile

using namespace straightway::cufile;

STRAIGHTWAY_CUFILE abi::Error cuFileDriverOpen() {
  return guarded([] { return driver().open(); });
}

STRAIGHTWAY_CUFILE abi::Error cuFileDriverClose_v2() {
  return guarded([] { return driver().close(); });
}

STRAIGHTWAY_CUFILE abi::Error cuFileDriverClose() { return cuFileDriverClose_v2(); }

STRAIGHTWAY_CUFILE long cuFileUseCount() { return driver().use_count(); }

STRAIGHTWAY_CUFILE abi::Error cuFileGetVersion(int* version) {
  return guarded([&] {
    if (version == nullptr) return abi::invalid_value;
    *version = driver().version();
    return abi::success;
  });
}

STRAIGHTWAY_CUFILE abi::Error cuFileDriverGetProperties(abi::Properties* out) {
  return guarded([&] {
    if (out == nullptr) return abi::invalid_value;
    const auto session = driver().session();
    *out = properties(session.get());
    return abi::success;
  });
}

STRAIGHTWAY_CUFILE abi::Error cuFileDriverSetPollMode(bool, std::size_t threshold_kb) {
  return answer(threshold_kb == 0 || threshold_kb % 4 != 0 ? abi::invalid_value : abi::success);
}

STRAIGHTWAY_CUFILE abi::Error cuFileDriverSetMaxDirectIOSize(std::size_t size_kb) {
  return guarded([&] {
    if (size_kb < 64 || size_kb > 16384 || size_kb % 64 != 0) return abi::invalid_value;
    return driver().set_max_direct_io_kb(size_kb);
  });
}

STRAIGHTWAY_CUFILE abi::Error cuFileDriverSetMaxCacheSize(std::size_t size_kb) {
  return answer(check_limit_kb(size_kb));
}

STRAIGHTWAY_CUFILE abi::Error cuFileDriverSetMaxPinnedMemSize(std::size_t size_kb) {
  return guarded([&] {
    const abi::Code code = check_limit_kb(size_kb);
    return code == abi::success ? driver().set_max_pinned_kb(size_kb) : code;
  });
}

STRAIGHTWAY_CUFILE abi::Error cuFileGetBARSizeInKB(int device, std::size_t* size_kb) {
  return guarded([&] {
    if (size_kb == nullptr) return abi::invalid_value;
    const auto found = bar_size_kb(device);
    if (!found) return abi::invalid_value;
    *size_kb = *found;
    return abi::success;
  });
}

STRAIGHTWAY_CUFILE abi::Error cuFileDriverGetP2PFlags(int family, int* flags) {
  return guarded([&] {
    if (flags == nullptr || family < -1 || family >= p2p_family_count) return abi::invalid_value;
    *flags = 0;
    return abi::success;
  });
}

// 1 asks for PCI P2PDMA, which the vendor's library takes on x86 alone; it changes nothing here.
STRAIGHTWAY_CUFILE abi::Error cuFileDriverSetP2PFlags(int family, int flags) {
  const bool known = family >= 0 && family < p2p_family_count && (flags == 0 || flags == 1);
  return answer(known ? abi::success : abi::invalid_value);
}

STRAIGHTWAY_CUFILE abi::Error cuFileExportPCIeTopology(const char* path) {
  return guarded(
      [&] { return path != nullptr && export_topology(path) ? abi::success : abi::invalid_value; });
}

#define WITH_PARAMETERS(call)                                                  \
  guarded([&] {                                                                \
    return driver().with_parameters(                                           \
        [&](Staged& staged, const Configuration* running) { return (call); }); \
  })
#define WITH_STAGED(call) WITH_PARAMETERS(running != nullptr ? abi::driver_already_open : (call))

STRAIGHTWAY_CUFILE abi::Error cuFileGetParameterSizeT(int parameter, std::size_t* value) {
  return WITH_PARAMETERS(get_size(parameter, staged, running, value));
}

STRAIGHTWAY_CUFILE abi::Error cuFileGetParameterBool(int parameter, bool* value) {
  return WITH_PARAMETERS(get_bool(parameter, staged, running, value));
}

STRAIGHTWAY_CUFILE abi::Error cuFileGetParameterString(int parameter, char* text, int size) {
  return WITH_PARAMETERS(get_text(parameter, staged, running, text, size));
}

STRAIGHTWAY_CUFILE abi::Error cuFileSetParameterSizeT(int parameter, std::size_t value) {
  return WITH_STAGED(staged.set_size(parameter, value));
}

STRAIGHTWAY_CUFILE abi::Error cuFileSetParameterBool(int parameter, bool value) {
  return WITH_STAGED(staged.set_bool(parameter, value));
}

STRAIGHTWAY_CUFILE abi::Error cuFileSetParameterString(int parameter, const char* text) {
  return WITH_STAGED(staged.set_text(parameter, text));
}

STRAIGHTWAY_CUFILE abi::Error cuFileGetParameterMinMaxValue(int parameter, std::size_t* least,
                                                            std::size_t* most) {
  return guarded([&] { return get_range(parameter, least, most); });
}

STRAIGHTWAY_CUFILE abi::Error cuFileSetParameterPosixPoolSlabArray(const std::size_t* sizes,
                                                                   const std::size_t* counts,
                                                                   int count) {
  return WITH_STAGED(staged.set_slabs(Pool::posix, sizes, counts, count));
}

STRAIGHTWAY_CUFILE abi::Error cuFileGetParameterPosixPoolSlabArray(std::size_t* sizes,
                                                                   std::size_t* counts, int count) {
  return WITH_PARAMETERS(get_slabs(Pool::posix, staged, running, sizes, counts, count));
}

STRAIGHTWAY_CUFILE abi::Error cuFileSetParameterGpuBounceBufferSlabArray(const std::size_t* sizes,
                                                                         const std::size_t* counts,
                                                                         int count) {
  return WITH_STAGED(staged.set_slabs(Pool::gpu, sizes, counts, count));
}

STRAIGHTWAY_CUFILE abi::Error cuFileGetParameterGpuBounceBufferSlabArray(std::size_t* sizes,
                                                                         std::size_t* counts,
                                                                         int count) {
  return WITH_PARAMETERS(get_slabs(Pool::gpu, staged, running, sizes, counts, count));
}

// The mark by which we recognise ourselves among libraries of this name.
STRAIGHTWAY_CUFILE int straightway_cufile() { return 1; }
