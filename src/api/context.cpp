#include "straightway/context.hpp"

#include <mutex>
#include <utility>

#include "api/engine.hpp"

namespace straightway {

Result<std::shared_ptr<Context>> Context::create(const ContextOptions& options) {
  auto engine = Engine::create(options);
  if (!engine) return engine.error();
  return around(std::move(*engine));
}

std::shared_ptr<Context> Context::around(std::shared_ptr<Engine> engine) {
  return std::shared_ptr<Context>(new Context(std::move(engine)));
}

// Left alone at exit: transfers of other threads may still use it, and the GPU driver may be gone.
Result<std::shared_ptr<Context>> Context::process_default() {
  static std::mutex mutex;
  static auto* standard = new std::shared_ptr<Context>;
  const std::lock_guard lock(mutex);
  if (!*standard) {
    auto created = create();
    if (!created) return created.error();
    *standard = std::move(*created);
  }
  return *standard;
}

Context::Context(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
Context::~Context() = default;

const Settings& Context::settings() const { return *engine_->settings(); }

Result<std::shared_ptr<const MachineFacts>> Context::machine(bool with_gpu) const {
  return engine_->machine(with_gpu);
}

Result<void> Context::warmup(std::int32_t device) { return engine_->warmup(device); }

}  // namespace straightway
