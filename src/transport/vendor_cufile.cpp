#include "transport/vendor_cufile.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/hand_out.hpp"

namespace straightway::transport {
namespace {

constexpr std::uint32_t depth = 64;  // results kept between submit and reap
constexpr std::uint64_t largest_segment_bytes = std::uint64_t{1} << 30;

}  // namespace

VendorCufile::VendorCufile(std::shared_ptr<CufileLibrary> library,
                           std::shared_ptr<memory::Space> space, std::int32_t device)
    : library_(std::move(library)), space_(std::move(space)), device_(device) {
  capabilities_.name = "vendor_cufile";
  capabilities_.space = SpaceKind::cuda;
  capabilities_.largest_segment_bytes = largest_segment_bytes;
  capabilities_.depth = depth;
  capabilities_.threads = 1;
  done_.reserve(depth);
}

Result<Attachment> VendorCufile::attach(const FileRef& file) {
  if (!file.cufile || file.cufile->handle() == nullptr) {
    return Error{ErrorKind::closed,
                 ErrorOrigin::straightway,
                 0,
                 "attach a file",
                 "",
                 {},
                 "it is not registered with the vendor's library",
                 "register it first"};
  }
  const auto token = reinterpret_cast<std::uint64_t>(file.cufile->handle());
  return Attachment{file.cufile, token, token};
}

Result<Attachment> VendorCufile::attach(const MemoryRange& memory) {
  if (memory.space != SpaceKind::cuda || memory.device != device_) {
    return Error{ErrorKind::unsupported,
                 ErrorOrigin::straightway,
                 0,
                 "attach memory",
                 "",
                 {},
                 "this transport moves memory of cuda:" + std::to_string(device_) + " only",
                 "plan it as staged"};
  }
  return Attachment{nullptr, memory.address, memory.address};
}

// Registers as much as there is room for; with none, the library moves all of it by way of memory
// of its own.
std::int64_t VendorCufile::move_chunk(const Segment& segment, std::uint64_t done,
                                      std::uint64_t& wanted) {
  void* const handle = reinterpret_cast<void*>(segment.file);
  const auto address = segment.address + done;
  const auto offset = segment.file_offset + done;
  wanted = segment.size_bytes - done;
  const auto registered = library_->register_memory(device_, address, wanted);
  if (registered > 0) wanted = registered;
  const auto result = library_->move(segment.direction, handle, address, wanted, offset);
  library_->deregister_memory(device_, address);
  return result;
}

// Ends at the first chunk that is short; what moved before an error counts, and the error comes
// again with the rest.
std::int64_t VendorCufile::move_in_chunks(const Segment& segment) {
  std::uint64_t done = 0;
  while (done < segment.size_bytes) {
    std::uint64_t wanted = 0;
    const auto result = move_chunk(segment, done, wanted);
    if (result < 0) return done > 0 ? static_cast<std::int64_t>(done) : result;
    done += static_cast<std::uint64_t>(result);
    if (static_cast<std::uint64_t>(result) < wanted) break;
  }
  return static_cast<std::int64_t>(done);
}

Completion VendorCufile::move(const Segment& segment) {
  Completion completion;
  completion.cookie = segment.cookie;
  completion.result = -EIO;
  const auto entered =
      space_->in_context(device_, [&] { completion.result = move_in_chunks(segment); });
  if (!entered) completion.error = std::make_shared<const Error>(entered.error());
  return completion;
}

std::size_t VendorCufile::submit(std::span<const Segment> segments) {
  std::size_t taken = 0;
  while (taken < segments.size() && done_.size() < depth) done_.push_back(move(segments[taken++]));
  return taken;
}

std::size_t VendorCufile::reap(std::span<Completion> completions) {
  return hand_out(done_, completions);
}

}  // namespace straightway::transport
