#pragma once
// The machine that the library sees. The tests link another definition in front of this one.

#include <memory>

#include "straightway/context.hpp"

namespace straightway::cufile {

Result<std::shared_ptr<Context>> make_context(const ContextOptions& options);

}  // namespace straightway::cufile
