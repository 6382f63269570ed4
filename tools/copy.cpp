// straightway copy: file to file through host memory, reads and writes overlapping.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "arguments.hpp"
#include "commands.hpp"
#include "copy_target.hpp"
#include "interrupt.hpp"
#include "json.hpp"
#include "plan/units.hpp"
#include "receipt_sum.hpp"

namespace straightway::tools {
namespace {

constexpr std::uint64_t chunk_bytes = std::uint64_t{8} << 20;
constexpr std::size_t slot_count = 4;  // half of them fill while the others empty
constexpr std::size_t alignment_bytes = 4096;

struct AlignedDelete {
  void operator()(std::byte* memory) const {
    ::operator delete(memory, std::align_val_t{alignment_bytes});
  }
};
using Buffer = std::unique_ptr<std::byte, AlignedDelete>;

// One chunk on its way: being read, then being written.
struct Slot {
  Buffer buffer;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  std::optional<Job> job;
};

struct Totals {
  std::optional<Receipt> read;
  std::optional<Receipt> written;
  std::uint64_t written_bytes() const { return written ? written->moved_bytes : 0; }
};

void add(std::optional<Receipt>& sum, const Receipt& receipt) {
  if (sum) {
    tools::add(*sum, receipt);
  } else {
    sum = receipt;
  }
}

// The chunks of a file through the slots: chunk i is read while chunk i - 2 is written.
class Pipeline {
 public:
  Pipeline(const File& source, const File& target, std::uint64_t size_bytes, CallOptions options,
           ProgressLine& progress)
      : source_(source),
        target_(target),
        size_bytes_(size_bytes),
        options_(std::move(options)),
        progress_(progress) {}

  Result<void> run(Totals& totals) {
    const std::uint64_t chunks = size_bytes_ / chunk_bytes + (size_bytes_ % chunk_bytes != 0);
    constexpr std::uint64_t behind = slot_count / 2;
    for (std::uint64_t i = 0; i < chunks + slot_count; ++i) {
      if (interrupted() != 0) return drain(interrupted_error("copy"));
      if (i >= slot_count && i - slot_count < chunks) {
        if (auto ended = end_write(slot(i - slot_count), totals); !ended)
          return drain(ended.error());
      }
      if (i < chunks) {
        if (auto begun = begin_read(i); !begun) return drain(begun.error());
      }
      if (i >= behind && i - behind < chunks) {
        if (auto begun = begin_write(slot(i - behind), totals); !begun) return drain(begun.error());
      }
    }
    return {};
  }

 private:
  Slot& slot(std::uint64_t chunk) { return slots_[chunk % slot_count]; }

  Result<void> begin_read(std::uint64_t chunk) {
    Slot& now = slot(chunk);
    now.offset = chunk * chunk_bytes;
    now.size_bytes = std::min(chunk_bytes, size_bytes_ - now.offset);
    if (!now.buffer) {
      now.buffer.reset(static_cast<std::byte*>(
          ::operator new(std::min(chunk_bytes, size_bytes_), std::align_val_t{alignment_bytes})));
    }
    CallOptions options = options_;
    options.offset = now.offset;
    options.exact = true;  // a source that shrinks meanwhile is an error, not a copy
    auto job = source_.submit_read({now.buffer.get(), now.size_bytes}, options);
    if (!job) return job.error();
    now.job = std::move(*job);
    return {};
  }

  Result<void> begin_write(Slot& now, Totals& totals) {
    const auto receipt = wait_for(*std::exchange(now.job, std::nullopt), {});
    if (!receipt) return receipt.error();
    add(totals.read, *receipt);
    CallOptions options = options_;
    options.offset = now.offset;
    auto job = target_.submit_write({now.buffer.get(), now.size_bytes}, options);
    if (!job) return job.error();
    now.job = std::move(*job);
    return {};
  }

  Result<void> end_write(Slot& now, Totals& totals) {
    const auto receipt = wait_for(*std::exchange(now.job, std::nullopt), {});
    if (!receipt) return receipt.error();
    add(totals.written, *receipt);
    progress_.show(totals.written_bytes());
    return {};
  }

  // Nothing may be in flight when the buffers go.
  Result<void> drain(Error error) {
    for (Slot& busy : slots_) {
      if (busy.job) busy.job->cancel();
    }
    for (Slot& busy : slots_) {
      if (busy.job) static_cast<void>(busy.job->result());
    }
    return error;
  }

  const File& source_;
  const File& target_;
  std::uint64_t size_bytes_;
  CallOptions options_;
  ProgressLine& progress_;
  std::array<Slot, slot_count> slots_;
};

// A file of /proc reports size 0 and has bytes all the same; one that grows has more than we took.
Result<void> check_end(const File& source, std::uint64_t size_bytes, Terminal& terminal) {
  char byte = 0;
  const ssize_t more = ::pread(source.descriptor(), &byte, 1, static_cast<off_t>(size_bytes));
  if (more <= 0) return {};
  if (size_bytes == 0) {
    Error error = usage_error("copy", "it reports no size, but has bytes");
    error.kind = ErrorKind::wrong_file_type;
    error.path = source.path();
    error.advice = "files of /proc and /sys are made while they are read; use cat";
    return error;
  }
  terminal.warn(fmt::format("'{}' grew while it was copied; the copy has its first {} bytes",
                            source.path(), size_bytes));
  return {};
}

Result<void> finish(const File& source, const File& written, CopyTarget& target, Sync sync,
                    std::uint64_t size_bytes, Terminal& terminal) {
  if (auto ended = check_end(source, size_bytes, terminal); !ended) return ended;
  const int fd = written.descriptor();
  if (sync == Sync::data && ::fdatasync(fd) != 0) {
    return system_error(errno, "make it durable", written.path());
  }
  if (sync == Sync::full && ::fsync(fd) != 0) {
    return system_error(errno, "make it durable", written.path());
  }
  return target.finish(sync);
}

Result<std::uint64_t> copy(const CopyOptions& options, Totals& totals, Terminal& terminal) {
  CallOptions call;
  if (auto applied = apply_choices(options.policy, options.cache, call); !applied) {
    return applied.error();
  }
  const auto sync = parse_sync(options.sync);
  if (!sync) return sync.error();
  if (options.target.empty()) {
    return usage_error("copy to ''", "TARGET is empty", "name the file that is to be made");
  }
  const auto source = File::open(options.source);
  if (!source) return source.error();
  auto size = source->size();
  if (!size) return size;
  struct stat status;
  if (::fstat(source->descriptor(), &status) != 0) {
    return system_error(errno, "look at it", options.source);
  }
  auto target = CopyTarget::begin(options.target, status, *size, options.force);
  if (!target) return target.error();
  const auto written = File::from_descriptor(target->descriptor());
  if (!written) return written.error();
  {
    ProgressLine progress(terminal, "copying", *size);
    Pipeline pipeline(*source, *written, *size, call, progress);
    if (auto run = pipeline.run(totals); !run) {
      if (run.error().path == written->path()) run.error().path = options.target;
      return run.error();
    }
  }
  if (auto done = finish(*source, *written, *target, *sync, *size, terminal); !done) {
    return done.error();
  }
  return size;
}

// What is written has no name of its own until it is whole; people know it by the target's.
void name_target(Totals& totals, const std::string& target) {
  if (!totals.written || !totals.written->file) return;
  auto named = std::make_shared<FileFacts>(*totals.written->file);
  named->path = target;
  totals.written->file = std::move(named);
}

Json receipt_json(const std::optional<Receipt>& receipt) {
  return receipt ? parse_json(receipt->to_json()) : Json(nullptr);
}

void print_text(const CopyOptions& options, std::uint64_t size_bytes, std::uint64_t passed_ns,
                const Totals& totals, Terminal& terminal) {
  terminal.print_line(fmt::format(
      "copied {} from {} to {} in {}, {}",
      terminal.paint(Paint::bold, plan::format_bytes(size_bytes)), options.source, options.target,
      plan::format_duration_ns(passed_ns), plan::format_rate(size_bytes, passed_ns)));
  for (const auto& receipt : {totals.read, totals.written}) {
    if (!receipt) continue;
    const std::string text = receipt->to_text();
    terminal.print(fmt::format("{}{}", text, text.ends_with('\n') ? "" : "\n"));
  }
}

}  // namespace

int run_copy(const CopyOptions& options, Terminal& terminal) {
  notice_interrupts();
  const auto begun = std::chrono::steady_clock::now();
  Totals totals;
  const auto copied = copy(options, totals, terminal);
  const auto passed_ns = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begun)
          .count());
  if (!copied) {
    const int code = terminal.fail(copied.error(), options.json);
    if (interrupted() == 0) return code;
    terminal.warn(fmt::format("{} had been copied; the unfinished target was removed",
                              plan::format_bytes(totals.written_bytes())));
    return interrupted_exit_code();
  }
  name_target(totals, options.target);
  if (options.json) {
    terminal.print_line(dump(Json{{"source", options.source},
                                  {"target", options.target},
                                  {"size_bytes", *copied},
                                  {"time_ns", passed_ns},
                                  {"read", receipt_json(totals.read)},
                                  {"written", receipt_json(totals.written)}}));
  } else {
    print_text(options, *copied, passed_ns, totals, terminal);
  }
  return 0;
}

}  // namespace straightway::tools
