#pragma once
// Small files of /proc and /sys, and links there, as text.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace straightway::os {

// The file's text, at most limit_bytes of it; nullopt where it cannot be read. Never leaves or
// occupies a descriptor below 3.
std::optional<std::string> read_text(const std::string& path, std::size_t limit_bytes = 1 << 20);
// The first number in the file.
std::optional<std::uint64_t> read_number(const std::string& path);
// Where a symbolic link points to.
std::optional<std::string> read_link(const std::string& path);
bool exists(const std::string& path);
bool is_directory(const std::string& path);

// What stands behind the last slash.
std::string_view base_name(std::string_view path);
// Digits at the front of text; nullopt where there are none or they do not fit.
std::optional<std::uint64_t> to_number(std::string_view text);
// Takes the text before the first separator off the front of rest.
std::string_view take_field(std::string_view& rest, char separator);

}  // namespace straightway::os
