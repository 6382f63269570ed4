#include <fmt/format.h>

#include "straightway/result.hpp"

namespace straightway {

const char* to_string(ErrorKind kind) {
  static constexpr const char* names[] = {"invalid-argument",
                                          "not-found",
                                          "wrong-file-type",
                                          "permission",
                                          "closed",
                                          "no-space",
                                          "out-of-memory",
                                          "too-many-files",
                                          "io",
                                          "short-transfer",
                                          "route-refused",
                                          "evidence-missing",
                                          "device",
                                          "unsupported",
                                          "cancelled",
                                          "deadline-exceeded",
                                          "forked"};
  const auto i = static_cast<std::size_t>(kind);
  return i < std::size(names) ? names[i] : "unknown";
}

const char* to_string(ErrorOrigin origin) {
  static constexpr const char* names[] = {"straightway", "system", "cuda", "cufile"};
  const auto i = static_cast<std::size_t>(origin);
  return i < std::size(names) ? names[i] : "unknown";
}

std::string Error::message() const {
  std::string text = "cannot " + attempted;
  if (!path.empty()) text += fmt::format(" '{}'", path);
  if (offset) text += fmt::format(" at offset {}", *offset);
  if (!why.empty()) text += ": " + why;
  if (!advice.empty()) text += "; " + advice;
  return text;
}

}  // namespace straightway
