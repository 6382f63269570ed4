// The C ABI: contexts, files, transfers and jobs, each a thin layer over the C++ call of that name.

#include <chrono>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "api/c_edge.hpp"

using namespace straightway;
using namespace straightway::c_edge;

namespace {

Error null_argument(const char* name) { return invalid(std::string("use ") + name, "it is NULL"); }

// Out-arguments are NULL unless the call succeeds.
template <class Handle>
Result<void> clear_out(Handle** out, const char* name) {
  if (out == nullptr) return null_argument(name);
  *out = nullptr;
  return {};
}

Memory memory_of(const void* address, std::size_t size_bytes) {
  // Reads write through it, writes do not: the direction of the call decides.
  return {.address = const_cast<void*>(address), .size_bytes = size_bytes};
}

// Gives the receipt of a transfer out, where it is wanted.
Result<void> hand_out(Result<Receipt> result, sw_receipt** receipt) {
  if (!result) return std::move(result.error());
  if (receipt != nullptr) *receipt = new sw_receipt(std::move(*result));
  return {};
}

// A blocking transfer of one range or many: body gets the options.
template <class Body>
sw_status blocking(const sw_file* file, const sw_call_options* options, sw_receipt** receipt,
                   sw_error* error, Body body) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (receipt != nullptr) *receipt = nullptr;
    if (file == nullptr) return null_argument("file");
    Result<CallOptions> taken = call_options_of(options);
    if (!taken) return taken.error();
    return hand_out(body(*taken), receipt);
  });
}

// The caller's release call as an owner. It is armed only once the job exists.
class Release {
 public:
  Release(void (*call)(void*), void* user) : call_(call), user_(user) {}
  Release(const Release&) = delete;
  Release& operator=(const Release&) = delete;
  ~Release() {
    if (armed_) call_(user_);
  }
  void arm() { armed_ = true; }

 private:
  void (*call_)(void*);
  void* user_;
  bool armed_ = false;
};

using Submit = Result<Job> (File::*)(Memory, const CallOptions&, std::shared_ptr<void>) const;

sw_status submit(const sw_file* file, Memory memory, const sw_call_options* options, sw_job** job,
                 sw_error* error, Submit call) noexcept {
  return guarded(error, [&]() -> Result<void> {
    if (Result<void> out = clear_out(job, "job"); !out) return out;
    if (file == nullptr) return null_argument("file");
    Result<sw_call_options> taken = take(options, "sw_call_options");
    if (!taken) return taken.error();
    Result<CallOptions> call_options = call_options_of(*taken);
    if (!call_options) return call_options.error();
    auto handle = std::make_unique<sw_job>();  // first: once submitted, nothing may fail
    std::shared_ptr<Release> release;
    if (taken->release != nullptr)
      release = std::make_shared<Release>(taken->release, taken->release_user);
    Result<Job> submitted = (file->file.*call)(memory, *call_options, release);
    if (!submitted) return submitted.error();
    if (release) release->arm();
    handle->job = std::move(*submitted);
    *job = handle.release();
    return {};
  });
}

Result<std::vector<RangeRequest>> ranges_of(const sw_range* ranges, std::size_t count) {
  if (ranges == nullptr && count != 0) return null_argument("ranges");
  std::vector<RangeRequest> requests;
  requests.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    requests.push_back({.offset = ranges[i].offset,
                        .size_bytes = ranges[i].size_bytes,
                        .memory = memory_of(ranges[i].address, ranges[i].size_bytes)});
  return requests;
}

Result<std::vector<PlacedRange>> placed_of(const sw_placed_range* ranges, std::size_t count) {
  if (ranges == nullptr && count != 0) return null_argument("ranges");
  std::vector<PlacedRange> placed;
  placed.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    placed.push_back({ranges[i].offset, ranges[i].size_bytes, ranges[i].position});
  return placed;
}

using MoveRanges = Result<Receipt> (File::*)(const std::vector<RangeRequest>&,
                                             const CallOptions&) const;

sw_status move_ranges(const sw_file* file, const sw_range* ranges, std::size_t count,
                      const sw_call_options* options, sw_receipt** receipt, sw_error* error,
                      MoveRanges call) noexcept {
  return blocking(file, options, receipt, error, [&](const CallOptions& taken) -> Result<Receipt> {
    auto requests = ranges_of(ranges, count);
    if (!requests) return requests.error();
    return (file->file.*call)(*requests, taken);
  });
}

using MovePlaced = Result<Receipt> (File::*)(Memory, std::span<const PlacedRange>,
                                             const CallOptions&) const;

sw_status move_placed(const sw_file* file, Memory memory, const sw_placed_range* ranges,
                      std::size_t count, const sw_call_options* options, sw_receipt** receipt,
                      sw_error* error, MovePlaced call) noexcept {
  return blocking(file, options, receipt, error, [&](const CallOptions& taken) -> Result<Receipt> {
    auto placed = placed_of(ranges, count);
    if (!placed) return placed.error();
    return (file->file.*call)(memory, *placed, taken);
  });
}

Result<std::vector<FileRequest>> paths_of(const sw_path_range* ranges, std::size_t count) {
  if (ranges == nullptr && count != 0) return null_argument("ranges");
  std::vector<FileRequest> requests;
  requests.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (ranges[i].path == nullptr)
      return null_argument(("ranges[" + std::to_string(i) + "].path").c_str());
    requests.push_back({.path = ranges[i].path,
                        .offset = ranges[i].offset,
                        .size_bytes = ranges[i].size_bytes,
                        .memory = memory_of(ranges[i].address, ranges[i].size_bytes)});
  }
  return requests;
}

Result<void> hand_out_file(Result<File> opened, sw_file** file) {
  if (!opened) return std::move(opened.error());
  std::string path = opened->path();
  *file = new sw_file{std::move(*opened), std::move(path)};
  return {};
}

Result<PinOptions> pin_options_of(const sw_file_range* ranges, std::size_t count,
                                  std::int32_t device) {
  if (ranges == nullptr && count != 0) return null_argument("ranges");
  PinOptions options;
  options.device = device;
  if (ranges == nullptr) return options;
  options.ranges.emplace();
  for (std::size_t i = 0; i < count; ++i) {
    options.ranges->push_back({ranges[i].offset, ranges[i].size_bytes});
  }
  return options;
}

Result<void> hand_out_plan(Result<Plan> explained, sw_plan** plan) {
  if (!explained) return std::move(explained.error());
  *plan = new sw_plan(std::move(*explained));
  return {};
}

std::optional<std::chrono::nanoseconds> timeout_of(std::uint64_t timeout_ns) {
  constexpr auto longest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (timeout_ns > longest) return std::nullopt;  // 292 years: as good as none
  return std::chrono::nanoseconds(timeout_ns);
}

}  // namespace

extern "C" {

sw_status sw_context_create(const sw_context_options* options, sw_context** context,
                            sw_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (Result<void> out = clear_out(context, "context"); !out) return out;
    Result<ContextOptions> taken = context_options_of(options);
    if (!taken) return taken.error();
    auto handle = std::make_unique<sw_context>();
    auto created = Context::create(*taken);
    if (!created) return created.error();
    handle->context = std::move(*created);
    *context = handle.release();
    return {};
  });
}

void sw_context_destroy(sw_context* context) { delete context; }

sw_status sw_context_warmup(sw_context* context, int32_t device, sw_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (device < -1)
      return invalid("warm up device " + std::to_string(device), "there is no such device",
                     "use -1 for the host's part alone");
    if (context != nullptr) return context->context->warmup(device);
    auto shared = Context::process_default();
    if (!shared) return shared.error();
    return (*shared)->warmup(device);
  });
}

sw_status sw_open(sw_context* context, const char* path, const char* mode,
                  const sw_open_options* options, sw_file** file, sw_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (Result<void> out = clear_out(file, "file"); !out) return out;
    if (path == nullptr) return null_argument("path");
    Result<OpenOptions> taken = open_options_of(options);
    if (!taken) return taken.error();
    return hand_out_file(
        File::open(path, mode == nullptr ? "r" : mode, *taken, context_of(context)), file);
  });
}

sw_status sw_open_fd(sw_context* context, int fd, const sw_open_options* options, sw_file** file,
                     sw_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (Result<void> out = clear_out(file, "file"); !out) return out;
    Result<OpenOptions> taken = open_options_of(options);
    if (!taken) return taken.error();
    return hand_out_file(File::from_descriptor(fd, *taken, context_of(context)), file);
  });
}

sw_status sw_file_close(sw_file* file, sw_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (file == nullptr) return null_argument("file");
    return file->file.close();
  });
}

void sw_file_free(sw_file* file) { delete file; }

int sw_file_is_closed(const sw_file* file) {
  return file == nullptr || file->file.closed() ? 1 : 0;
}

sw_status sw_file_size(const sw_file* file, uint64_t* size_bytes, sw_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (file == nullptr) return null_argument("file");
    if (size_bytes == nullptr) return null_argument("size_bytes");
    Result<std::uint64_t> size = file->file.size();
    if (!size) return size.error();
    *size_bytes = *size;
    return {};
  });
}

const char* sw_file_path(const sw_file* file) {
  return file == nullptr ? nullptr : file->path.c_str();
}

int sw_file_descriptor(const sw_file* file) {
  return file == nullptr ? -1 : file->file.descriptor();
}

sw_status sw_file_pin(const sw_file* file, const sw_file_range* ranges, size_t count,
                      int32_t device, sw_pin** pin, sw_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (Result<void> out = clear_out(pin, "pin"); !out) return out;
    if (file == nullptr) return null_argument("file");
    Result<PinOptions> options = pin_options_of(ranges, count, device);
    if (!options) return options.error();
    Result<Pin> made = file->file.pin(*options);
    if (!made) return made.error();
    *pin = new sw_pin{std::move(*made)};
    return {};
  });
}

int sw_pin_holds(const sw_pin* pin) {
  return guarded_getter(0, [&] { return pin != nullptr && pin->pin.holds() ? 1 : 0; });
}

void sw_pin_release(sw_pin* pin) { delete pin; }

sw_status sw_read_into(const sw_file* file, void* address, size_t memory_bytes,
                       const sw_call_options* options, sw_receipt** receipt, sw_error* error) {
  return blocking(file, options, receipt, error, [&](const CallOptions& taken) {
    return file->file.read_into(memory_of(address, memory_bytes), taken);
  });
}

sw_status sw_write_from(const sw_file* file, const void* address, size_t memory_bytes,
                        const sw_call_options* options, sw_receipt** receipt, sw_error* error) {
  return blocking(file, options, receipt, error, [&](const CallOptions& taken) {
    return file->file.write_from(memory_of(address, memory_bytes), taken);
  });
}

sw_status sw_submit_read(const sw_file* file, void* address, size_t memory_bytes,
                         const sw_call_options* options, sw_job** job, sw_error* error) {
  return submit(file, memory_of(address, memory_bytes), options, job, error, &File::submit_read);
}

sw_status sw_submit_write(const sw_file* file, const void* address, size_t memory_bytes,
                          const sw_call_options* options, sw_job** job, sw_error* error) {
  return submit(file, memory_of(address, memory_bytes), options, job, error, &File::submit_write);
}

sw_status sw_read_ranges(const sw_file* file, const sw_range* ranges, size_t count,
                         const sw_call_options* options, sw_receipt** receipt, sw_error* error) {
  return move_ranges(file, ranges, count, options, receipt, error, &File::read_ranges);
}

sw_status sw_write_ranges(const sw_file* file, const sw_range* ranges, size_t count,
                          const sw_call_options* options, sw_receipt** receipt, sw_error* error) {
  return move_ranges(file, ranges, count, options, receipt, error, &File::write_ranges);
}

sw_status sw_read_ranges_into(const sw_file* file, void* address, size_t memory_bytes,
                              const sw_placed_range* ranges, size_t count,
                              const sw_call_options* options, sw_receipt** receipt,
                              sw_error* error) {
  return move_placed(file, memory_of(address, memory_bytes), ranges, count, options, receipt, error,
                     &File::read_ranges);
}

sw_status sw_write_ranges_from(const sw_file* file, const void* address, size_t memory_bytes,
                               const sw_placed_range* ranges, size_t count,
                               const sw_call_options* options, sw_receipt** receipt,
                               sw_error* error) {
  return move_placed(file, memory_of(address, memory_bytes), ranges, count, options, receipt, error,
                     &File::write_ranges);
}

sw_status sw_read_many(sw_context* context, const sw_path_range* ranges, size_t count,
                       const sw_call_options* options, sw_receipt** receipt, sw_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (receipt != nullptr) *receipt = nullptr;
    Result<CallOptions> taken = call_options_of(options);
    if (!taken) return taken.error();
    auto requests = paths_of(ranges, count);
    if (!requests) return requests.error();
    return hand_out(read_many(*requests, *taken, context_of(context)), receipt);
  });
}

sw_status sw_job_result(const sw_job* job, uint64_t timeout_ns, sw_receipt** receipt,
                        sw_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (receipt != nullptr) *receipt = nullptr;
    if (job == nullptr) return null_argument("job");
    return hand_out(job->job.result(timeout_of(timeout_ns)), receipt);
  });
}

int sw_job_done(const sw_job* job) {
  return guarded_getter(0, [&] { return job != nullptr && job->job.done() ? 1 : 0; });
}

int sw_job_cancel(const sw_job* job) {
  return guarded_getter(0, [&] { return job != nullptr && job->job.cancel() ? 1 : 0; });
}

sw_status sw_job_on_done(const sw_job* job, void (*callback)(void* user), void* user,
                         sw_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (job == nullptr) return null_argument("job");
    if (callback == nullptr) return null_argument("callback");
    job->job.on_done([callback, user] { callback(user); });
    return {};
  });
}

sw_status sw_job_progress(const sw_job* job, uint64_t* moved_bytes, uint64_t* wanted_bytes,
                          sw_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (job == nullptr) return null_argument("job");
    const Progress progress = job->job.progress();
    if (moved_bytes != nullptr) *moved_bytes = progress.moved_bytes;
    if (wanted_bytes != nullptr) *wanted_bytes = progress.wanted_bytes;
    return {};
  });
}

void sw_job_free(sw_job* job) { delete job; }

sw_status sw_explain(const sw_file* file, sw_direction direction, const void* address,
                     size_t memory_bytes, const sw_call_options* options, sw_plan** plan,
                     sw_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (Result<void> out = clear_out(plan, "plan"); !out) return out;
    if (file == nullptr) return null_argument("file");
    Result<Direction> way = direction_of(direction);
    if (!way) return way.error();
    Result<CallOptions> taken = call_options_of(options);
    if (!taken) return taken.error();
    return hand_out_plan(file->file.explain(*way, memory_of(address, memory_bytes), *taken), plan);
  });
}

sw_status sw_explain_space(const sw_file* file, sw_direction direction, sw_space space,
                           int32_t device, uint64_t size_bytes, const sw_call_options* options,
                           sw_plan** plan, sw_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (Result<void> out = clear_out(plan, "plan"); !out) return out;
    if (file == nullptr) return null_argument("file");
    Result<Direction> way = direction_of(direction);
    if (!way) return way.error();
    Result<SpaceKind> kind = space_of(space);
    if (!kind) return kind.error();
    if (*kind == SpaceKind::cuda && device < 0)
      return invalid("explain for CUDA device " + std::to_string(device),
                     "there is no such device");
    Result<CallOptions> taken = call_options_of(options);
    if (!taken) return taken.error();
    const std::int32_t ordinal = *kind == SpaceKind::host ? -1 : device;
    return hand_out_plan(file->file.explain(*way, *kind, ordinal, size_bytes, *taken), plan);
  });
}

}  // extern "C"
