#pragma once
// One call of the front door: arguments checked once, then Request, Plan, transfer, Receipt.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "api/open_file.hpp"
#include "plan/planner.hpp"
#include "straightway/file.hpp"

namespace straightway {

// A range of a call, with its file, which stays in use as long as the range exists.
struct CallRange {
  FileUse file;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  Memory memory;
  bool registered = false;  // cuFile door: the memory was registered there
  bool ordered = true;      // after the work queued on the stream; false: the caller has waited
  std::shared_ptr<const memory::PeerMapping> peer =
      nullptr;  // kept mapped; null: not peer memory, or unseen

  CallRange again() const {
    return {file.again(), offset, size_bytes, memory, registered, ordered, peer};
  }
};

// The ranges of a call, one at least, made one after the other: a call of very many keeps none of
// them.
struct CallRanges {
  CallRange range;  // as the first is, but for what next() sets
  std::size_t count = 1;
  std::uint64_t largest_bytes = 0;
  std::optional<Memory> all = std::nullopt;  // in which all lie
  // The plan of the only range, made just before; empty: none was.
  std::optional<Plan> planned = std::nullopt;
  // Makes range number i of the one before it; called once for each, in their order, before the
  // call returns.
  std::function<void(std::size_t i, CallRange& range)> next = nullptr;
};

// Overrides of the settings by the call's options.
std::shared_ptr<const Settings> call_settings(const std::shared_ptr<const Settings>& settings,
                                              const CallOptions& options);

// Checks the range against the file's mode and the memory, and plans it. known: memory that was
// resolved before (or does not exist yet), else it is found from the pointer.
Result<Plan> plan_call(Direction direction, const CallRange& range,
                       const std::shared_ptr<const Settings>& settings,
                       const MemoryRange* known = nullptr,
                       std::uint64_t spare_memory_bytes = UINT64_MAX);
// The same for people: with one look at the first window, where residency will decide.
Result<Plan> explain_call(Direction direction, const CallRange& range,
                          const std::shared_ptr<const Settings>& settings,
                          const MemoryRange* known = nullptr);

// What the file's pins hold.
void add_pins(plan::Facts& facts, OpenFile& file);

// What may keep a small call waiting beside its own copies.
enum class StreamWait { yes, no };  // work that is left in the user's stream
// A small transfer on this thread, without an allocation; empty where the range is none, or would
// have to wait (run_call then does it, or says what is wrong).
std::optional<Result<Receipt>> run_small(Direction direction, const CallRange& range,
                                         const CallOptions& options,
                                         StreamWait stream_wait = StreamWait::yes);

// Blocking.
Result<Receipt> run_call(Direction direction, CallRanges ranges, const CallOptions& options);
// The same of one range, as run_small does it if that goes.
Result<Receipt> run_one(Direction direction, CallRange range, const CallOptions& options);
// Submits; the files go when it is drained.
Result<Job> submit_call(Direction direction, CallRanges ranges, const CallOptions& options,
                        std::shared_ptr<void> owner);

// The range that the options name.
CallRange range_of(FileUse file, const Memory& memory, const CallOptions& options);
CallRanges only(CallRange range);

Error closed_error(Direction direction, const std::string& path);

}  // namespace straightway
