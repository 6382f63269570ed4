#pragma once
// The codes of cuFile in words.

#include <string>
#include <string_view>

namespace straightway::os {

struct CodeText {
  std::string_view name;     // "CU_FILE_HANDLE_NOT_REGISTERED"; empty for a code that is none
  std::string_view meaning;  // "the handle is not registered"
  std::string_view advice;
};

// code: as answered, or negated.
CodeText describe_cufile(int code);
// "cuFile code 5008, CU_FILE_IO_NOT_SUPPORTED: this file cannot be used that way"
std::string cufile_text(int code);
// Whether it is one of cuFile's, and no errno.
constexpr bool is_cufile_code(int code) { return code > 5000; }
// Whether it says that not enough of the device's memory can be shown at once.
constexpr bool lacks_room(int code) { return code == 5016 || code == 5036 || code == 5045; }

}  // namespace straightway::os
