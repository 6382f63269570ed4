#pragma once
// A Context owns what transfers need: threads, the pinned ring, transports, the ledger. Programs
// that do not care use the process-default one, made on first use by Context::process_default().
//
// Thread rule: every call of Context, File and Job may be made from any thread at any time.
// Fork: a child's copy is dead to the parent's transfers; host I/O starts afresh there, GPU use is
// refused with ErrorKind::forked.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "straightway/plan.hpp"
#include "straightway/receipt.hpp"
#include "straightway/result.hpp"
#include "straightway/settings.hpp"

namespace straightway {

class Engine;  // src/api/engine.hpp

// Overrides of settings at the API's rank; unset ones come from the environment, else the default.
struct ContextOptions {
  std::optional<Policy> policy;
  std::optional<Cache> cache;
  std::optional<Demand> evidence;
  std::optional<std::uint64_t> threads;       // 1..1024; 0: chosen from the machine
  std::optional<std::uint64_t> pinned_bytes;  // hard limit of pinned host memory: the ring's
  std::optional<std::uint64_t> pin_bytes;     // hard limit of what pins of files hold; 0: chosen
  std::optional<bool> ledger;
  std::optional<std::string> vendor_library;  // absolute path, "none", or empty: looked for
  // The one sink for warnings; called from any thread, must not call back. Unset: silence.
  std::function<void(std::string_view)> on_warning;
};

class Context {
 public:
  // Reads STRAIGHTWAY_* once. A nonsense value is an error that names the variable. Starts no
  // thread and touches no GPU until the first transfer needs it.
  static Result<std::shared_ptr<Context>> create(const ContextOptions& options = {});

  // The one at the edge; made on first use, left alone at exit.
  static Result<std::shared_ptr<Context>> process_default();

  // Drains what is in flight.
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Settings& settings() const;
  // Reads the machine on first call, touching the GPU driver only when with_gpu.
  Result<std::shared_ptr<const MachineFacts>> machine(bool with_gpu = true) const;

  // Pays first-use costs now: starts the threads, pins the ring, and, for a device >= 0, retains
  // its primary context.
  Result<void> warmup(std::int32_t device = -1);

  // For the library itself and its tests; no part of the promise to users.
  const std::shared_ptr<Engine>& engine() const { return engine_; }
  static std::shared_ptr<Context> around(std::shared_ptr<Engine> engine);

 private:
  explicit Context(std::shared_ptr<Engine> engine);
  std::shared_ptr<Engine> engine_;
};

}  // namespace straightway
