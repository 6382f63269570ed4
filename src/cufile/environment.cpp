#include "cufile/environment.hpp"

#include <cstdlib>

namespace straightway::cufile {

std::optional<std::string> read_variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::nullopt : std::optional<std::string>(text);
}

}  // namespace straightway::cufile
