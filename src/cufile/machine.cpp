#include "cufile/machine.hpp"

namespace straightway::cufile {

Result<std::shared_ptr<Context>> make_context(const ContextOptions& options) {
  return Context::create(options);
}

}  // namespace straightway::cufile
