#pragma once
// Memory that a process shows to other programs of its user: a sealed memfd, found by its name
// through /proc/PID/fd. What stands there is hostile input: another program may show any bytes
// under the same name.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "straightway/result.hpp"

namespace straightway::os {

// What such memory begins with. The first three words keep their place and meaning in every
// version.
struct ShownHeader {
  std::uint64_t magic = 0;
  std::uint64_t version = 0;
  std::uint64_t size_bytes = 0;  // of the whole
  std::int64_t pid = 0;          // as the writer sees itself
};

struct ShownForm {
  std::string_view link_prefix;  // "/memfd:straightway-ledger-"
  std::uint64_t magic = 0;
  std::uint64_t version = 0;
  std::size_t size_bytes = 0;
  const char* name = "";       // "a ledger"
  const char* when_none = "";  // what to do where a process shows none
};

// Gives take a copy of each memory of this form that the process made itself: not what a forked
// child holds of its parent's. Success where there was one. Else ErrorKind::not_found where it has
// none (or is gone), permission where it is another user's, unsupported where its version is
// another, wrong_file_type where it only pretends.
Result<void> read_shown(std::int64_t pid, const ShownForm& form,
                        const std::function<void(std::span<const std::byte>)>& take);

// The processes of this user, in order.
std::vector<std::int64_t> own_processes();

}  // namespace straightway::os
