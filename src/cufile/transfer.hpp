#pragma once
// One read or write: checked, moved over the same plan, drive and receipts as everything else, and
// answered as the documented interface answers.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "api/call.hpp"
#include "cufile/session.hpp"
#include "cufile/statistics.hpp"

namespace straightway::cufile {

struct Transfer {
  Flow flow = Flow::read;
  void* base = nullptr;
  std::size_t size = 0;
  off_t file_offset = 0;
  off_t memory_offset = 0;

  Direction direction() const {
    return flow == Flow::read || flow == Flow::readv || flow == Flow::batch_read ? Direction::read
                                                                                 : Direction::write;
  }
};

// result: bytes; or -1 with error_number (an errno, or a code of cuFile); or a negated code.
struct Outcome {
  ssize_t result = 0;
  int error_number = 0;
};
inline Outcome fail_with(int error_number) { return {-1, error_number}; }
// The code of a failure, for calls that answer with one: 5022 for an errno of 5022, else 5044.
abi::Code code_of(const Outcome& failed);

// A transfer that may begin.
struct Checked {
  Memory memory;
  std::uint64_t offset = 0;  // in the file
  std::optional<MemoryRange> registered;
  bool ordered = true;  // after the work queued on the default stream
};

// Why it may not begin, without having touched the file.
std::optional<Outcome> check(const Session& session, const Handle& handle, const Transfer& transfer,
                             Checked& checked);

// Blocking.
Outcome run(Session& session, const Handle& handle, const Transfer& transfer);

// The same without counting it; adds its parts and its time to `whole`.
Outcome run_uncounted(Session& session, const Handle& handle, const Transfer& transfer,
                      CountedCall& whole);

// Submitted, and counted when it is over: done is called once, from any thread, with nothing in
// flight any more; it must not block. ordered false: the caller has waited for the queued work.
// A file system in user space blocks: its transfer gets a thread of its own.
using Done = std::function<void(const Outcome&, bool cancelled)>;
Job submit(Session& session, const std::shared_ptr<Handle>& handle, const Transfer& transfer,
           bool ordered, Done done);
// What a call that is over counts; checked and receipt are null where it did not come to that.
CountedCall counted(const Session& session, const Transfer& transfer, const Checked* checked,
                    const Outcome& outcome, const Receipt* receipt);
void count(Session& session, const CountedCall& call);

}  // namespace straightway::cufile
