#include "cufile/vectored.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <span>

namespace straightway::cufile {
namespace {

constexpr std::size_t piece_limit = 1024;  // IOV_MAX

bool is_valid(std::span<const abi::Piece> pieces) {
  constexpr std::size_t most = std::numeric_limits<ssize_t>::max();
  std::size_t sum = 0;
  return std::ranges::all_of(pieces, [&](const abi::Piece& piece) {
    if (piece.size > most - sum || (piece.memory == nullptr && piece.size > 0)) return false;
    sum += piece.size;
    return true;
  });
}

// A call without pieces, or with nonsense in them.
Outcome refuse(Session& session, Flow flow) {
  CountedCall call;
  call.flow = flow;
  call.failed = true;
  session.statistics.count(call);
  return fail_with(EINVAL);
}

}  // namespace

Outcome run_vectored(Session& session, const Handle& handle, Flow flow, const abi::Piece* pieces,
                     std::size_t count, off_t file_offset) {
  if (pieces == nullptr || count == 0 || count > piece_limit || file_offset < 0) {
    return refuse(session, flow);
  }
  const std::span<const abi::Piece> all(pieces, count);
  if (!is_valid(all)) return refuse(session, flow);
  CountedCall whole;
  whole.flow = flow;
  Outcome sum;
  for (const abi::Piece& piece : all) {
    if (piece.size == 0) continue;
    Transfer transfer{flow, piece.memory, piece.size, file_offset + sum.result, 0};
    const Outcome step = run_uncounted(session, handle, transfer, whole);
    if (step.result < 0) {
      if (sum.result == 0) sum = step;
      break;
    }
    sum.result += step.result;
    if (static_cast<std::size_t>(step.result) < piece.size) break;
  }
  whole.failed = sum.result < 0;
  cufile::count(session, whole);
  return sum;
}

}  // namespace straightway::cufile
