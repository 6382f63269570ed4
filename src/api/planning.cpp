#include "api/planning.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "api/peer_call.hpp"
#include "api/vendor_call.hpp"
#include "drive/inline_transfer.hpp"
#include "os/memory_access.hpp"
#include "plan/planner.hpp"

namespace straightway {

Error argument_error(Direction direction, const CallRange& range, std::string why,
                     std::string advice) {
  return {ErrorKind::invalid_argument,
          ErrorOrigin::straightway,
          0,
          to_string(direction),
          range.file->facts->path,
          range.offset,
          std::move(why),
          std::move(advice)};
}

bool fits_a_file(const FileRange& range) {
  constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return range.offset <= largest && range.size_bytes <= largest - range.offset;
}

namespace {

Result<void> check_offsets(Direction direction, const CallRange& range) {
  if (fits_a_file({range.offset, range.size_bytes})) return {};
  return argument_error(direction, range, "offset and size end beyond 2^63 - 1, or are negative",
                        "give an offset and a size within the file");
}

Result<void> check_range(Direction direction, const CallRange& range) {
  if (range.size_bytes > range.memory.size_bytes) {
    return argument_error(direction, range,
                          "the size is " + std::to_string(range.size_bytes) +
                              " bytes and the memory has " +
                              std::to_string(range.memory.size_bytes),
                          "give a larger memory, or a smaller size");
  }
  const auto address = reinterpret_cast<std::uint64_t>(range.memory.address);
  if (range.size_bytes > 0 && address == 0) {
    return argument_error(direction, range, "the memory's address is null",
                          "give allocated memory");
  }
  if (range.memory.size_bytes > std::numeric_limits<std::uint64_t>::max() - address) {
    return argument_error(direction, range, "the memory ends beyond the address space",
                          "check address and size");
  }
  return range.file->allows(direction);
}

// A write from memory that is not there could lengthen the file before the kernel finds out. Memory
// with a hole in its middle passes.
Result<void> check_source(const CallRange& range) {
  if (range.size_bytes == 0 || os::is_readable(range.memory.address, range.size_bytes)) return {};
  auto error =
      argument_error(Direction::write, range, "the memory at the address given cannot be accessed",
                     "give memory that is allocated, of the whole size");
  error.origin = ErrorOrigin::system;
  error.code = EFAULT;
  return error;
}

bool lies_in(const MemoryRange& piece, std::uint64_t address, std::uint64_t size_bytes) {
  return address >= piece.address && size_bytes <= piece.size_bytes &&
         address - piece.address <= piece.size_bytes - size_bytes;
}

}  // namespace

Planning::Planning(Direction direction, std::shared_ptr<const Settings> settings,
                   const MemoryRange* known, std::uint64_t spare_memory_bytes)
    : direction_(direction),
      settings_(std::move(settings)),
      known_(known),
      spare_memory_bytes_(spare_memory_bytes) {}

Result<void> Planning::look_at_memory(const CallRange& all) {
  if (auto checked = check_range(direction_, all); !checked) return checked.error();
  auto found = find_memory(all);
  if (!found) return found.error();
  if (direction_ == Direction::read || found->space != SpaceKind::host) return {};
  if (auto checked = check_source(all); !checked) return checked.error();
  readable_ = *found;
  return {};
}

Result<MemoryRange> Planning::find_memory(const CallRange& range) {
  const auto address = reinterpret_cast<std::uint64_t>(range.memory.address);
  const bool is_said = !range.memory.device || *range.memory.device == piece_.device;
  if (range.size_bytes > 0 && is_said && lies_in(piece_, address, range.size_bytes)) {
    return MemoryRange{piece_.space, piece_.device, address, range.size_bytes};
  }
  auto found = range.file->engine->find_memory(range.memory, range.size_bytes, &piece_);
  if (!found) {
    auto error = found.error();
    error.path = range.file->facts->path;
    return error;
  }
  return *found;
}

// The request's memory, checked as far as it can be before anything moves.
Result<MemoryRange> Planning::memory_of(const CallRange& range) {
  if (range.peer) return peer_range(range);
  if (known_ != nullptr) return *known_;
  auto memory = find_memory(range);
  const bool is_source =
      memory && direction_ == Direction::write && memory->space == SpaceKind::host;
  if (!is_source || lies_in(readable_, memory->address, range.size_bytes)) return memory;
  if (auto checked = check_source(range); !checked) return checked.error();
  return memory;
}

// A small read finds the end by itself, and saves the look. O_DIRECT would clear memory behind it.
bool Planning::needs_file_size(const CallRange& range) const {
  const bool may_be_direct =
      settings_->policy.value == Policy::direct || settings_->cache.value == Cache::bypass;
  return known_ != nullptr || range.size_bytes > drive::inline_limit_bytes || may_be_direct ||
         direction_ == Direction::write || range.peer;
}

Result<std::uint64_t> Planning::file_size(const CallRange& range) {
  const OpenFile& file = *range.file;
  const bool needs_stamp = range.peer && !file.facts->is_block_device;
  if (&file == sized_file_ && (!needs_stamp || is_stamped_)) return file_size_bytes_;
  is_stamped_ = false;
  if (needs_stamp) {
    auto stamp = file.stamp();
    if (!stamp) return stamp.error();
    stamp_ = *stamp;
    is_stamped_ = true;
    file_size_bytes_ = stamp->size_bytes;
  } else {
    auto size = file.size();
    if (!size) return size.error();
    file_size_bytes_ = *size;
  }
  sized_file_ = &file;
  return file_size_bytes_;
}

const plan::Facts& Planning::facts_of(const CallRange& range, SpaceKind space) {
  auto& file = *range.file;
  if (&file == file_ && space == space_ && !range.peer) return facts_;
  const bool on_device = space == SpaceKind::cuda;
  const bool with_gpu = on_device || (known_ != nullptr && !range.peer);
  facts_ = {file.facts, file.engine->machine(with_gpu), nullptr, {}, false};
  if (range.peer) facts_.peer = peer_facts(range);
  if (on_device) add_pins(facts_, file);
  if (on_device && facts_.machine->vendor_library) facts_.file = vendor_facts(file);
  file_ = range.peer ? nullptr : &file;
  space_ = space;
  return facts_;
}

Result<Plan> Planning::plan(const CallRange& range) {
  if (auto checked = check_offsets(direction_, range); !checked) return checked.error();
  if (known_ == nullptr) {
    if (auto checked = check_range(direction_, range); !checked) return checked.error();
  }
  auto memory = memory_of(range);
  if (!memory) return memory.error();
  Request request;
  request.direction = direction_;
  request.door = range.file->door;
  request.registered = range.registered;
  request.file = {range.offset, range.size_bytes};
  request.memory = *memory;
  request.spare_memory_bytes = spare_memory_bytes_;
  if (needs_file_size(range)) {
    auto size = file_size(range);
    if (!size) return size.error();
    request.file_size_bytes = *size;
  }
  if (spare_memory_bytes_ != UINT64_MAX) {
    spare_memory_bytes_ -= std::min(spare_memory_bytes_, range.size_bytes);
  }
  return plan::make_plan(request, facts_of(range, memory->space), settings_);
}

}  // namespace straightway
