#pragma once
// A small transfer on the caller's own thread: no hand-off, no allocation.

#include <optional>
#include <string>

#include "drive/crew.hpp"
#include "memory/space.hpp"
#include "os/syscalls.hpp"
#include "plan/effort.hpp"
#include "straightway/plan.hpp"
#include "straightway/receipt.hpp"
#include "straightway/result.hpp"
#include "transport/transport.hpp"

namespace straightway::drive {

using plan::inline_limit_bytes;
// The same where the device reads pinned pages itself: about 75 us.
inline constexpr std::uint64_t pinned_inline_limit_bytes = std::uint64_t{4} << 20;

// And a read up to this size, which a crew shares in pieces.
inline constexpr std::uint64_t crew_limit_bytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t crew_piece_bytes = std::uint64_t{128} << 10;
// What is all cached in smaller ones: the threads' shares come out even (4 MiB on one H200: 337 us
// in pieces of 128 KiB, 242 us in these).
inline constexpr std::uint64_t cached_piece_bytes = std::uint64_t{32} << 10;
// And, where the page cache has all of it and the pump is idle, a read into device memory up to
// this size: in windows of crew_limit_bytes, one on its way to the device while the crew fills the
// next.
inline constexpr std::uint64_t windows_limit_bytes = std::uint64_t{16} << 20;
inline constexpr std::uint64_t crew_desk_bytes = 2 * crew_limit_bytes;

// The crew that shares a read, for a single run that is larger than inline_limit_bytes; null
// otherwise. piece_bytes: cached_piece_bytes at least.
struct Sharing {
  Sharing(Crew* helping, std::uint64_t each_bytes = crew_piece_bytes)
      : crew(helping), piece_bytes(each_bytes) {}
  Crew* crew;
  std::uint64_t piece_bytes;
};

// Moves the plan's runs, or what there is of them, to or from host memory, and writes what moved
// into the receipt.
std::optional<Error> transfer_inline(const os::Syscalls& syscalls, const Plan& plan,
                                     const transport::FileRef& file, const std::string& path,
                                     bool may_fall_back, Sharing sharing, Receipt& receipt);

// The same to or from device memory, by way of the desk, which holds the whole request, or
// crew_desk_bytes where a crew reads more than crew_limit_bytes. The copies are ordered in the
// user's stream.
std::optional<Error> transfer_inline_device(const os::Syscalls& syscalls, const Plan& plan,
                                            const transport::FileRef& file, const std::string& path,
                                            memory::Desk& desk, std::optional<void*> stream,
                                            Sharing sharing, Receipt& receipt);

// The plan's only run, from pinned pages of the file; false where they do not stand their checks:
// then nothing counts, and the request has to be planned again.
Result<bool> transfer_inline_pinned(const Plan& plan, const transport::FileRef& file,
                                    const std::string& path, memory::Desk& desk,
                                    std::optional<void*> stream, Receipt& receipt);

}  // namespace straightway::drive
