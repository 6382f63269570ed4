// The names of the enumerations, as users and statistics write them.

#include <iterator>

#include "straightway/receipt.hpp"
#include "straightway/route.hpp"
#include "straightway/settings.hpp"

namespace straightway {
namespace {

// Looks a name up; a value outside the enumeration (hostile or newer data) is "unknown".
template <std::size_t N, class Enum>
const char* name(const char* const (&names)[N], Enum value) {
  const auto i = static_cast<std::size_t>(value);
  return i < N ? names[i] : "unknown";
}

}  // namespace

const char* to_string(Direction direction) {
  static constexpr const char* names[] = {"read", "write"};
  return name(names, direction);
}

const char* to_string(Route route) {
  static constexpr const char* names[] = {"nvfs",         "p2pdma", "direct-host",
                                          "pinned-cache", "staged", "buffered"};
  return name(names, route);
}

const char* to_string(Policy policy) {
  static constexpr const char* names[] = {"auto", "direct", "staged"};
  return name(names, policy);
}

const char* to_string(Cache cache) {
  static constexpr const char* names[] = {"auto", "keep", "drop", "bypass"};
  return name(names, cache);
}

const char* to_string(Demand demand) {
  static constexpr const char* names[] = {"any", "observed"};
  return name(names, demand);
}

const char* to_string(Sync sync) {
  static constexpr const char* names[] = {"none", "data", "full"};
  return name(names, sync);
}

const char* to_string(Door door) {
  static constexpr const char* names[] = {"straightway", "kvikio", "cufile"};
  return name(names, door);
}

const char* to_string(SpaceKind space) {
  static constexpr const char* names[] = {"host", "cuda", "peer"};
  return name(names, space);
}

const char* to_string(PeerStorage storage) {
  static constexpr const char* names[] = {"unknown", "takes", "refuses"};
  return name(names, storage);
}

const char* to_string(PeerBridge bridge) {
  static constexpr const char* names[] = {"unknown", "one-switch", "host-bridge"};
  return name(names, bridge);
}

const char* to_string(PeerTrial trial) {
  static constexpr const char* names[] = {"untried", "passed", "refused", "data-lost",
                                          "impossible"};
  return name(names, trial);
}

const char* to_string(Origin origin) {
  static constexpr const char* names[] = {"call", "api", "environment", "file", "default"};
  return name(names, origin);
}

const char* to_string(ColdWay way) {
  static constexpr const char* names[] = {"same", "kept", "dropped", "direct", "trimmed", "nvfs"};
  return name(names, way);
}

const char* to_string(CompatMode mode) {
  static constexpr const char* names[] = {"OFF", "ON", "AUTO"};
  return name(names, mode);
}

const char* to_string(EvidenceKind kind) {
  static constexpr const char* names[] = {"none", "observed", "claimed"};
  return name(names, kind);
}

const char* to_string(Witness witness) {
  static constexpr const char* names[] = {"none",   "own-copy", "thread-io", "vendor-library",
                                          "kernel", "trial",    "nvidia-fs"};
  return name(names, witness);
}

const char* to_string(Scope scope) {
  static constexpr const char* names[] = {"none", "request", "process", "machine"};
  return name(names, scope);
}

const char* to_string(Reason reason) {
  static constexpr const char* names[] = {"none",
                                          "host-memory",
                                          "device-memory",
                                          "small-request",
                                          "policy-staged",
                                          "policy-direct",
                                          "cache-bypass",
                                          "edge-block",
                                          "residency-unknown",
                                          "cold-kept",
                                          "cold-dropped",
                                          "cold-direct",
                                          "cold-trimmed",
                                          "direct-available",
                                          "compat-mode-on",
                                          "compat-mode-auto",
                                          "below-gds-threshold",
                                          "front-host-memory",
                                          "front-tasks",
                                          "force-compat",
                                          "allow-compat",
                                          "cufile-host-memory",
                                          "unaligned",
                                          "fell-back",
                                          "peer-direct",
                                          "peer-untried",
                                          "peer-copied",
                                          "pinned",
                                          "space-is-host",
                                          "space-is-device",
                                          "nvfs-not-loaded",
                                          "vendor-library-absent",
                                          "no-peer-memory",
                                          "no-block-device",
                                          "not-published",
                                          "kernel-without-p2pdma",
                                          "kernel-breaks-p2pdma",
                                          "peer-refused",
                                          "peer-data-lost",
                                          "peer-not-tried",
                                          "peer-holes",
                                          "peer-needs-no-ring",
                                          "route-not-built",
                                          "no-direct-io",
                                          "memory-misaligned",
                                          "request-too-small",
                                          "not-pinned",
                                          "pin-lost",
                                          "pinned-for-reads",
                                          "not-preferred",
                                          "policy-forbids",
                                          "write-extends",
                                          "no-gpu",
                                          "refused-compat",
                                          "range-too-large",
                                          "on-wsl",
                                          "nvfs-bad-version",
                                          "nvfs-no-nodes",
                                          "no-udev",
                                          "vendor-unusable",
                                          "vendor-refused",
                                          "vendor-copies"};
  static_assert(std::size(names) == reason_count);
  return name(names, reason);
}

}  // namespace straightway
