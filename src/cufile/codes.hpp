#pragma once
// The codes of cuFile in words.

#include <string_view>

namespace straightway::cufile {

struct CodeText {
  std::string_view name;     // "CU_FILE_HANDLE_NOT_REGISTERED"; empty for a code that is none
  std::string_view meaning;  // "the handle is not registered"
  std::string_view advice;
};

// code: as answered, or negated.
CodeText describe(int code);

}  // namespace straightway::cufile
