// The machine that a test tells of: below the folder that TOLD_MACHINE names lie its /proc, /sys,
// /dev and /run.
#include "cufile/machine.hpp"

#include <cstdlib>

#include "api/engine.hpp"

namespace straightway::cufile {

Result<std::shared_ptr<Context>> make_context(const ContextOptions& options) {
  const char* root = std::getenv("TOLD_MACHINE");
  auto engine = Engine::create(options, os::kernel(), root != nullptr ? root : "");
  if (!engine) return engine.error();
  return Context::around(std::move(*engine));
}

}  // namespace straightway::cufile
