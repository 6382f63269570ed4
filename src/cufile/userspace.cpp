#include "cufile/userspace.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <thread>

#include "api/engine.hpp"
#include "memory/cuda_space.hpp"

namespace straightway::cufile {
namespace {

constexpr std::size_t piece_bytes = 1 << 20;

// Moves [at, at + size) by the file system's own functions. Fewer bytes: the file ended.
Outcome move_host(const Handle& handle, Direction direction, char* at, std::size_t size,
                  off_t offset) {
  std::size_t moved = 0;
  while (moved < size) {
    const std::size_t left = size - moved;
    const auto place = offset + static_cast<off_t>(moved);
    errno = 0;
    const ssize_t step =
        direction == Direction::read
            ? handle.operations.read(handle.user, at + moved, left, place, nullptr)
            : handle.operations.write(handle.user, at + moved, left, place, nullptr);
    if (step < 0 || static_cast<std::size_t>(step) > left) {
      if (moved > 0) break;
      if (step == -1) return fail_with(errno != 0 ? errno : EIO);
      return fail_with(step < 0 && step > -4096 ? static_cast<int>(-step) : EIO);
    }
    if (step == 0) break;
    moved += static_cast<std::size_t>(step);
  }
  return {static_cast<ssize_t>(moved), 0};
}

// Copies one piece and waits for it.
bool copy_piece(memory::Lane& lane, Direction direction, std::uint64_t device_address, void* host,
                std::size_t size) {
  auto ticket = lane.copy(direction, device_address, host, size);
  if (!ticket) return false;
  for (;;) {
    const auto done = lane.poll();
    if (!done) return false;
    if (*done >= *ticket) return true;
    std::this_thread::yield();
  }
}

Outcome move_device(const Handle& handle, const Transfer& transfer, const MemoryRange& memory) {
  const auto cuda = memory::load_cuda();
  if (!cuda.space) return {-abi::cuda_driver_error, 0};
  auto pinned = cuda.space->pin(memory.device, piece_bytes);
  auto lane = cuda.space->open_lane(memory.device);
  if (!pinned || !lane) return {-abi::cuda_driver_error, 0};
  auto* host = reinterpret_cast<char*>((*pinned)->data());
  const Direction direction = transfer.direction();
  std::size_t moved = 0;
  while (moved < transfer.size) {
    const std::size_t wanted = std::min(piece_bytes, transfer.size - moved);
    const std::uint64_t place = memory.address + moved;
    const auto offset = transfer.file_offset + static_cast<off_t>(moved);
    if (direction == Direction::write && !copy_piece(**lane, direction, place, host, wanted)) {
      return {-abi::cuda_driver_error, 0};
    }
    const Outcome step = move_host(handle, direction, host, wanted, offset);
    if (step.result < 0) return moved > 0 ? Outcome{static_cast<ssize_t>(moved), 0} : step;
    const auto got = static_cast<std::size_t>(step.result);
    if (direction == Direction::read && got > 0 &&
        !copy_piece(**lane, direction, place, host, got)) {
      return {-abi::cuda_driver_error, 0};
    }
    moved += got;
    if (got < wanted) break;
  }
  return {static_cast<ssize_t>(moved), 0};
}

Outcome wait_for_queued_work(Session& session, const MemoryRange& memory) {
  if (!session.ordered) return {};
  auto mark = session.context->engine()->mark_stream(memory.device, std::nullopt);
  if (mark && !(*mark)->wait()) return {-abi::cuda_driver_error, 0};
  return {};
}

}  // namespace

Outcome move_userspace(Session& session, const Handle& handle, const Transfer& transfer,
                       const Checked& checked) {
  const bool read = transfer.direction() == Direction::read;
  if (read ? handle.operations.read == nullptr : handle.operations.write == nullptr) {
    return fail_with(abi::io_not_supported);
  }
  if (transfer.size == 0) return {};
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<off_t>::max());
  if (transfer.size > most - static_cast<std::size_t>(transfer.file_offset)) {
    return fail_with(EINVAL);
  }
  const auto memory = session.context->engine()->find_memory(checked.memory, transfer.size);
  if (!memory) return fail_with(EPERM);
  if (memory->space == SpaceKind::cuda) {
    const Outcome waited = wait_for_queued_work(session, *memory);
    return waited.result < 0 ? waited : move_device(handle, transfer, *memory);
  }
  auto* at = static_cast<char*>(checked.memory.address);
  return move_host(handle, transfer.direction(), at, transfer.size, transfer.file_offset);
}

}  // namespace straightway::cufile
