// Statistics.

#include "cufile/edge.hpp"
#include "cufile/registration.hpp"

namespace straightway::cufile {
namespace {

abi::Error get_level(int level, void* out) {
  return guarded_open(abi::driver_not_initialized, [&](const std::shared_ptr<Session>& session) {
    if (out == nullptr || session->statistics.level() < level) return abi::invalid_value;
    std::uint64_t gpu_count = 0;
    if (const auto machine = session->context->machine(level == 3)) {
      gpu_count = static_cast<std::uint64_t>((*machine)->cuda_devices);
    }
    const auto counters = session->statistics.snapshot(gpu_count, device_uuid);
    write_level(out, level, driver().version(), *counters);
    return abi::success;
  });
}

}  // namespace
}  // namespace straightway::cufile

using namespace straightway::cufile;

STRAIGHTWAY_CUFILE abi::Error cuFileSetStatsLevel(int level) {
  return guarded([&] { return driver().set_stats_level(level); });
}

STRAIGHTWAY_CUFILE abi::Error cuFileGetStatsLevel(int* level) {
  return guarded([&] {
    if (level == nullptr) return abi::invalid_value;
    *level = driver().stats_level();
    return abi::success;
  });
}

STRAIGHTWAY_CUFILE abi::Error cuFileStatsStart() {
  return guarded_open(abi::driver_not_initialized, [](const std::shared_ptr<Session>& session) {
    return session->statistics.start();
  });
}

STRAIGHTWAY_CUFILE abi::Error cuFileStatsStop() {
  return guarded_open(abi::driver_not_initialized, [](const std::shared_ptr<Session>& session) {
    session->statistics.stop();
    return abi::success;
  });
}

STRAIGHTWAY_CUFILE abi::Error cuFileStatsReset() {
  return guarded_open(abi::driver_not_initialized, [](const std::shared_ptr<Session>& session) {
    session->statistics.reset();
    return abi::success;
  });
}

STRAIGHTWAY_CUFILE abi::Error cuFileGetStatsL1(void* out) { return get_level(1, out); }
STRAIGHTWAY_CUFILE abi::Error cuFileGetStatsL2(void* out) { return get_level(2, out); }
STRAIGHTWAY_CUFILE abi::Error cuFileGetStatsL3(void* out) { return get_level(3, out); }
