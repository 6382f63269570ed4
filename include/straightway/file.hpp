#pragma once
// The front door: open a file, read it into memory or write memory to it, get a receipt.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "straightway/context.hpp"
#include "straightway/plan.hpp"
#include "straightway/receipt.hpp"
#include "straightway/result.hpp"

namespace straightway {

// Memory of any kind; its space and device are found from the pointer. The caller keeps it alive
// until the call returned, or the job is drained (or gives Job an owner).
struct Memory {
  void* address = nullptr;
  std::size_t size_bytes = 0;
  // What its owner says, where that says so: a CUDA ordinal. A pointer that lies elsewhere is an
  // error then.
  std::optional<std::int32_t> device = std::nullopt;
};

// A CUDA stream handle. Without one, transfers are ordered after the legacy default stream.
struct Stream {
  void* handle = nullptr;
};

struct Progress {
  std::uint64_t moved_bytes = 0;
  std::uint64_t wanted_bytes = 0;
};

struct OpenOptions {
  std::optional<Policy> policy;  // defaults of this file's calls
  std::optional<Cache> cache;
  Door door = Door::straightway;
};

struct CallOptions {
  std::uint64_t offset = 0;                 // file offset, bytes
  std::optional<std::uint64_t> size_bytes;  // default: the memory's size
  std::optional<Policy> policy;
  std::optional<Cache> cache;
  std::optional<Demand> evidence;
  bool exact = false;            // a short read (end of file) is an error
  Sync sync = Sync::none;        // writes only
  std::optional<Stream> stream;  // device memory only; order after the work queued on it
  std::optional<std::chrono::nanoseconds> deadline;  // from now; > 0
  // Called from a thread of the Context, at most every 50 ms and once at the end; must not block,
  // call back or throw (what it throws is dropped).
  std::function<void(const Progress&)> on_progress;
};

// One range of a many-range call.
struct RangeRequest {
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  Memory memory;
};

// One range of a many-range call with one memory.
struct PlacedRange {
  std::uint64_t offset = 0;  // in the file
  std::uint64_t size_bytes = 0;
  std::uint64_t position = 0;  // in the memory
};

namespace drive {
class Transfer;
}
struct OpenFile;  // src/api/open_file.hpp

// A submitted transfer. It owns its file (and what the caller gives as owner) until it is drained.
// Dropping a Job neither cancels nor waits: the Context finishes the transfer.
class Job {
 public:
  struct State;
  Job() = default;
  explicit Job(std::shared_ptr<State> state) : state_(std::move(state)) {}

  // Waits; nothing is in flight when it returns, unless it returns ErrorKind::deadline_exceeded
  // because timeout passed (the transfer goes on). May be called again: the same answer.
  Result<Receipt> result(std::optional<std::chrono::nanoseconds> timeout = {}) const;
  bool done() const;
  // Stops submitting; what is in flight drains, then result() is ErrorKind::cancelled. False when
  // it was done already.
  bool cancel() const;
  // Called once when done, after those given before: by a thread of the Context, or now. It must
  // not block nor throw (what it throws is dropped); blocking calls of this Context fail there.
  void on_done(std::function<void()> callback) const;
  // Bytes moved so far; of a job that failed or was cancelled, what had moved until then.
  Progress progress() const;

 private:
  std::shared_ptr<State> state_;
};

// Keeps page-cache pages of a file registered with the GPU's driver, until it is destroyed.
//
// While it holds, reads of device memory that lie within its ranges go out by the copy engine
// straight from the page cache (route pinned-cache). Each is checked before and after: where the
// file changed in any way but through somebody's mapping of it, all pins of the file are given up,
// with one warning, and the read is repeated through the ring. Reads never give stale bytes.
class Pin {
 public:
  struct State;
  Pin() = default;  // holds nothing
  explicit Pin(std::shared_ptr<State> state) : state_(std::move(state)) {}
  Pin(Pin&&) noexcept = default;
  Pin& operator=(Pin&& other) noexcept;
  ~Pin();  // releases

  // Waits for the copies that use the pages, then lets them go. Reads that still want them go
  // through the ring. Twice is not an error; from a callback it does not wait.
  void release();
  // False once it was released or given up, or the file closed, and for a pin of no bytes.
  bool holds() const;
  std::uint64_t size_bytes() const;  // of the file, that it held when it was made

 private:
  std::shared_ptr<State> state_;
};

struct PinOptions {
  // What to pin, as far as the file goes; unset: all of it.
  std::optional<std::vector<FileRange>> ranges;
  // Whose context registers the pages; every GPU of this process can then read them. -1: that of
  // the thread's current context, else the first.
  std::int32_t device = -1;
};

class File {
 public:
  // mode: "r", "r+", "w" (create or truncate), "x" (create, fail if there), the last two with an
  // optional "+" (read too), all with an optional "b".
  static Result<File> open(std::string_view path, std::string_view mode = "r",
                           OpenOptions options = {},
                           const std::shared_ptr<Context>& context = nullptr);
  // Duplicates the descriptor; the caller keeps its own.
  static Result<File> from_descriptor(int fd, OpenOptions options = {},
                                      const std::shared_ptr<Context>& context = nullptr);

  File() = default;  // closed
  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  ~File();  // closes

  // Drains the jobs of this file, then closes it. Closing twice is not an error. From a callback it
  // does not wait: the last job closes the file.
  Result<void> close();
  bool closed() const;
  Result<std::uint64_t> size() const;
  const std::string& path() const;  // "fd 7" when opened from a descriptor
  const FileFacts* facts() const;   // null when closed
  int descriptor() const;           // the buffered descriptor, -1 when closed

  Result<Receipt> read_into(Memory memory, const CallOptions& options = {}) const;
  Result<Receipt> write_from(Memory memory, const CallOptions& options = {}) const;
  // For callers who watch for something else while they wait: as the two above where the call takes
  // no longer than its own copies (it is small, and no work is left in the user's stream). Else
  // empty, with nothing in flight: then submit it.
  std::optional<Result<Receipt>> move_at_once(Direction direction, Memory memory,
                                              const CallOptions& options = {}) const;
  // owner is released when the job is drained.
  Result<Job> submit_read(Memory memory, const CallOptions& options = {},
                          std::shared_ptr<void> owner = nullptr) const;
  Result<Job> submit_write(Memory memory, const CallOptions& options = {},
                           std::shared_ptr<void> owner = nullptr) const;
  // options.offset and size_bytes do not count; all memories lie in one space.
  Result<Receipt> read_ranges(const std::vector<RangeRequest>& ranges,
                              const CallOptions& options = {}) const;
  Result<Receipt> write_ranges(const std::vector<RangeRequest>& ranges,
                               const CallOptions& options = {}) const;
  // As a job; owner is released when it is drained.
  Result<Job> submit_ranges(Direction direction, const std::vector<RangeRequest>& ranges,
                            const CallOptions& options = {},
                            std::shared_ptr<void> owner = nullptr) const;
  // The same with one memory for all ranges, which are read before these return. Before anything
  // moves, all of them are checked: what lies outside the memory is an error, and so are two ranges
  // that would fill the same bytes of it (a read) or of the file (a write), since nobody could say
  // whose bytes remain.
  Result<Receipt> read_ranges(Memory into, std::span<const PlacedRange> ranges,
                              const CallOptions& options = {}) const;
  Result<Receipt> write_ranges(Memory from, std::span<const PlacedRange> ranges,
                               const CallOptions& options = {}) const;
  Result<Job> submit_ranges(Direction direction, Memory memory, std::span<const PlacedRange> ranges,
                            const CallOptions& options = {},
                            std::shared_ptr<void> owner = nullptr) const;
  // Registers pages; takes 30 to 70 ms a GiB. An error where that cannot be made safe (file system,
  // driver), where the file is being changed, or where pin_bytes would be exceeded.
  Result<Pin> pin(const PinOptions& options = {}) const;
  Result<Plan> explain(Direction direction, Memory memory, const CallOptions& options = {}) const;
  // The plan for memory that does not exist yet: size_bytes into a space.
  Result<Plan> explain(Direction direction, SpaceKind space, std::int32_t device,
                       std::uint64_t size_bytes, const CallOptions& options = {}) const;
  // The same for peer memory of the PCI device with this address ("0000:02:00.0").
  Result<Plan> explain_peer(Direction direction, std::string_view pci_device,
                            std::uint64_t size_bytes, const CallOptions& options = {}) const;

 private:
  explicit File(std::shared_ptr<OpenFile> open);
  std::shared_ptr<OpenFile> open_;
};

struct FileRequest {
  std::string path;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> size_bytes;  // default: the memory's size
  Memory memory;
};

// Many files in one call, one receipt. The first error stops the rest and is returned once nothing
// is in flight. go_on is asked on the calling thread before each batch of files, when nothing is in
// flight; false ends the call as cancelled.
Result<Receipt> read_many(const std::vector<FileRequest>& requests, const CallOptions& options = {},
                          const std::shared_ptr<Context>& context = nullptr,
                          const std::function<bool()>& go_on = nullptr);

// "0.1.0"; the C ABI is stable within a minor version.
const char* version();

}  // namespace straightway
