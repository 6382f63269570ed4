#include "calls.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <string>

#include "arguments.hpp"
#include "bridge.hpp"
#include "memory.hpp"
#include "placed.hpp"
#include "straightway/file.hpp"
#include "text.hpp"
#include "values.hpp"

namespace nb = nanobind;

namespace straightway::python {
namespace {

using ContextPointer = std::shared_ptr<Context>;

// Transfers of host memory below this run on the calling thread: a hand-off costs more.
constexpr std::uint64_t inline_bytes = std::uint64_t{1} << 20;

std::string to_path(const nb::bytes& path) {
  std::string text(path.c_str(), path.size());
  if (text.find('\0') != std::string::npos) throw nb::value_error("path: has a null character");
  return text;
}

// --- Context

struct ContextBox {
  ContextPointer context;
  ~ContextBox() {
    const Unlocked unlocked;  // draining may take long
    context.reset();
  }
};

std::optional<std::uint64_t> to_count(nb::handle object, const char* name) {
  if (object.is_none()) return std::nullopt;
  return to_bytes(object, name);
}

// keywords: threads, pinned_bytes, policy, cache, evidence, on_warning, pin_bytes; None: not given.
std::unique_ptr<ContextBox> make_context(const nb::tuple& keywords) {
  ContextOptions options;
  options.threads = to_count(keywords[0], "threads");
  options.pinned_bytes = to_count(keywords[1], "pinned_bytes");
  options.policy = to_optional_word("policy", keywords[2], all_policies);
  options.cache = to_optional_word("cache", keywords[3], all_caches);
  options.evidence = to_optional_word("evidence", keywords[4], all_demands);
  options.pin_bytes = to_count(keywords[6], "pin_bytes");
  const nb::object on_warning = keywords[5];
  if (!on_warning.is_none()) {
    options.on_warning = [sink = share(Lease(Py_NewRef(on_warning.ptr())))](std::string_view text) {
      Event event;
      event.callable = sink;
      event.text = std::string(text);
      bridge().post(std::move(event));
    };
  }
  auto box = std::make_unique<ContextBox>();
  box->context = value_or_raise(Context::create(options));
  return box;
}

void warm_up(const ContextPointer& context, std::int32_t device) {
  auto result = [&] {
    const Unlocked unlocked;
    return context->warmup(device);
  }();
  value_or_raise(std::move(result));
}

// --- File

struct FileBox {
  File file;
  ~FileBox() {
    const Unlocked unlocked;
    (void)file.close();
  }
};

OpenOptions open_options(nb::handle policy, nb::handle cache) {
  OpenOptions options;
  options.policy = to_optional_word("policy", policy, all_policies);
  options.cache = to_optional_word("cache", cache, all_caches);
  return options;
}

ContextPointer context_of(const ContextBox* box) { return box != nullptr ? box->context : nullptr; }

nb::object box_file(Result<File> file) {
  auto box = std::make_unique<FileBox>();
  box->file = value_or_raise(std::move(file));
  return nb::cast(std::move(box));
}

nb::object open_path(const nb::bytes& path, const std::string& mode, nb::handle policy,
                     nb::handle cache, const ContextBox* context) {
  const std::string name = to_path(path);
  const OpenOptions options = open_options(policy, cache);
  auto result = [&] {
    const Unlocked unlocked;
    return File::open(name, mode, options, context_of(context));
  }();
  return box_file(std::move(result));
}

nb::object open_descriptor(int fd, nb::handle policy, nb::handle cache, const ContextBox* context) {
  const OpenOptions options = open_options(policy, cache);
  auto result = [&] {
    const Unlocked unlocked;
    return File::from_descriptor(fd, options, context_of(context));
  }();
  return box_file(std::move(result));
}

void close_file(FileBox& box) {
  auto result = [&] {
    const Unlocked unlocked;
    return box.file.close();
  }();
  value_or_raise(std::move(result));
}

std::uint64_t file_size(const FileBox& box) {
  auto result = [&] {
    const Unlocked unlocked;
    return box.file.size();
  }();
  return value_or_raise(std::move(result));
}

struct PinBox {
  Pin pin;
  ~PinBox() { release(); }
  void release() {
    const Unlocked unlocked;
    pin.release();
  }
};

nb::tuple to_entry(nb::handle entry, std::size_t length, const char* form);

// ranges: (offset, size) tuples, or None for the whole file; device: -1 for any.
std::unique_ptr<PinBox> pin_file(const FileBox& box, nb::handle ranges, std::int32_t device) {
  PinOptions options;
  options.device = device;
  if (!ranges.is_none()) {
    options.ranges.emplace();
    for (const nb::handle entry : nb::iter(ranges)) {
      const nb::tuple fields = to_entry(entry, 2, "ranges: expected (offset, size) tuples");
      options.ranges->push_back({to_bytes(fields[0], "offset"), to_bytes(fields[1], "size")});
    }
  }
  auto result = [&] {
    const Unlocked unlocked;
    return box.file.pin(options);
  }();
  auto made = std::make_unique<PinBox>();
  made->pin = value_or_raise(std::move(result));
  return made;
}

// A job that exists before it is submitted, so that no signal can come between.
struct JobBox {
  Job job;
  bool submitted = false;
  std::optional<std::size_t> ranges;  // of a many-range job, whose receipt always has the table
};

// What a job keeps alive until it is drained; the file too, so that dropping it never waits.
struct Kept {
  std::shared_ptr<Lease> memory;
  std::shared_ptr<Lease> file;
};

struct KeptRanges {
  std::vector<std::shared_ptr<Lease>> memory;
  std::shared_ptr<Lease> file;
};

void set_progress(CallOptions& options, nb::handle progress) {
  if (progress.is_none()) return;
  options.on_progress = [call = share(Lease(Py_NewRef(progress.ptr())))](const Progress& seen) {
    Event event;
    event.callable = call;
    event.is_progress = true;
    event.moved_bytes = seen.moved_bytes;
    event.wanted_bytes = seen.wanted_bytes;
    bridge().post(std::move(event));
  };
}

void submit_piece(nb::handle self, JobBox& job, Piece piece, CallOptions options,
                  Direction direction) {
  const File& file = nb::cast<FileBox&>(self).file;
  auto kept = std::make_shared<Kept>();
  kept->memory = share(std::move(piece.lease));
  kept->file = share(Lease(Py_NewRef(self.ptr())));
  auto result = [&] {
    const Unlocked unlocked;
    return direction == Direction::read
               ? file.submit_read(piece.memory, std::move(options), std::move(kept))
               : file.submit_write(piece.memory, std::move(options), std::move(kept));
  }();
  job.job = value_or_raise(std::move(result));
  job.submitted = true;
}

Result<Receipt> transfer_now(const File& file, Direction direction, Memory memory,
                             const CallOptions& options) {
  const Unlocked unlocked;
  return direction == Direction::read ? file.read_into(memory, options)
                                      : file.write_from(memory, options);
}

// The same of device memory, where no work in the user's stream has to be waited for.
std::optional<Result<Receipt>> transfer_at_once(const File& file, Direction direction,
                                                Memory memory, const CallOptions& options) {
  const Unlocked unlocked;
  return file.move_at_once(direction, memory, options);
}

// Moves a small range at once and gives its receipt; else fills job, so that the caller can watch
// for signals while it waits, and gives None.
nb::object transfer(nb::handle self, JobBox& job, nb::handle direction_word, const nb::tuple& place,
                    const nb::tuple& keywords) {
  bridge().collect();
  const Direction direction = to_word("direction", direction_word, all_directions);
  CallOptions options = to_options(keywords);
  Piece piece = to_piece(place, direction, options);
  options.offset = piece.offset;
  options.size_bytes = piece.size_bytes;
  const File& file = nb::cast<FileBox&>(self).file;
  if (piece.is_device) {
    auto moved = transfer_at_once(file, direction, piece.memory, options);
    if (moved) return nb::cast(value_or_raise(std::move(*moved)));
  } else if (piece.size_bytes < inline_bytes) {
    return nb::cast(value_or_raise(transfer_now(file, direction, piece.memory, options)));
  }
  submit_piece(self, job, std::move(piece), std::move(options), direction);
  return nb::none();
}

void submit(nb::handle self, JobBox& job, nb::handle direction_word, const nb::tuple& place,
            const nb::tuple& keywords, nb::handle progress) {
  bridge().collect();
  const Direction direction = to_word("direction", direction_word, all_directions);
  CallOptions options = to_options(keywords);
  Piece piece = to_piece(place, direction, options);
  options.offset = piece.offset;
  options.size_bytes = piece.size_bytes;
  set_progress(options, progress);
  submit_piece(self, job, std::move(piece), std::move(options), direction);
}

nb::tuple to_entry(nb::handle entry, std::size_t length, const char* form) {
  const nb::tuple fields = nb::tuple(nb::borrow(entry));
  if (fields.size() != length) throw nb::value_error(form);
  return fields;
}

void submit_ranges(nb::handle self, JobBox& job, nb::handle direction_word, nb::handle ranges,
                   const nb::tuple& keywords) {
  bridge().collect();
  const Direction direction = to_word("direction", direction_word, all_directions);
  CallOptions options = to_options(keywords);
  auto kept = std::make_shared<KeptRanges>();
  std::vector<RangeRequest> requests;
  for (const nb::handle entry : nb::iter(ranges)) {
    const nb::tuple fields = to_entry(entry, 3, "ranges: expected (offset, size, array) tuples");
    Piece piece = to_piece(nb::make_tuple(fields[2], fields[0], fields[1]), direction, options);
    kept->memory.push_back(share(std::move(piece.lease)));
    requests.push_back({piece.offset, piece.size_bytes, piece.memory});
  }
  kept->file = share(Lease(Py_NewRef(self.ptr())));
  const File& file = nb::cast<FileBox&>(self).file;
  auto result = [&] {
    const Unlocked unlocked;
    return file.submit_ranges(direction, requests, std::move(options), std::move(kept));
  }();
  job.job = value_or_raise(std::move(result));
  job.submitted = true;
  job.ranges = requests.size();
}

// One memory for all ranges.
void submit_placed(nb::handle self, JobBox& job, nb::handle direction_word, nb::handle ranges,
                   nb::handle array, const nb::tuple& keywords) {
  bridge().collect();
  const Direction direction = to_word("direction", direction_word, all_directions);
  CallOptions options = to_options(keywords);
  const auto placed = to_placed(ranges);
  Found found = find_memory(array, direction, options.stream);
  if (!options.stream) options.stream = found.stream;
  auto kept = std::make_shared<Kept>();
  kept->memory = share(std::move(found.lease));
  kept->file = share(Lease(Py_NewRef(self.ptr())));
  const File& file = nb::cast<FileBox&>(self).file;
  auto result = [&] {
    const Unlocked unlocked;
    return file.submit_ranges(direction, found.memory, placed, options, std::move(kept));
  }();
  job.job = value_or_raise(std::move(result));
  job.submitted = true;
  job.ranges = placed.size();
}

Receipt read_files(nb::handle entries, const ContextBox* context, const nb::tuple& keywords) {
  bridge().collect();
  CallOptions options = to_options(keywords);
  std::vector<Lease> leases;
  std::vector<FileRequest> requests;
  for (const nb::handle entry : nb::iter(entries)) {
    const nb::tuple fields =
        to_entry(entry, 4, "requests: expected (path, offset, size, array) tuples");
    Piece piece =
        to_piece(nb::make_tuple(fields[3], fields[1], fields[2]), Direction::read, options);
    leases.push_back(std::move(piece.lease));
    requests.push_back({to_path(nb::cast<nb::bytes>(nb::object(fields[0]))), piece.offset,
                        piece.size_bytes, piece.memory});
  }
  bool interrupted = false;  // then a signal's handler has raised
  auto result = [&] {
    Unlocked unlocked;
    return read_many(requests, options, context_of(context), [&] {
      interrupted = unlocked.locked([] { return PyErr_CheckSignals() != 0; });
      return !interrupted;
    });
  }();
  if (interrupted) throw nb::python_error();
  return value_or_raise(std::move(result));
}

Plan explain_array(const FileBox& box, nb::handle direction_word, const nb::tuple& place,
                   const nb::tuple& keywords) {
  const Direction direction = to_word("direction", direction_word, all_directions);
  CallOptions options = to_options(keywords);
  const Piece piece = to_piece(place, direction, options);
  options.offset = piece.offset;
  options.size_bytes = piece.size_bytes;
  auto result = [&] {
    const Unlocked unlocked;
    return box.file.explain(direction, piece.memory, options);
  }();
  return value_or_raise(std::move(result));
}

Plan explain_space(const FileBox& box, nb::handle direction_word, std::int32_t device,
                   nb::handle offset, nb::handle size, const nb::tuple& keywords) {
  const Direction direction = to_word("direction", direction_word, all_directions);
  CallOptions options = to_options(keywords);
  options.offset = to_bytes(offset, "offset");
  std::uint64_t size_bytes = 0;
  if (size.is_none()) {  // what the file has
    const auto whole_bytes = file_size(box);
    size_bytes = whole_bytes - std::min(whole_bytes, options.offset);
  } else {
    size_bytes = to_bytes(size, "size");
  }
  if (size_bytes > INT64_MAX - options.offset) {
    throw nb::value_error("size: file positions end at 2^63 - 1");
  }
  const SpaceKind space = device < 0 ? SpaceKind::host : SpaceKind::cuda;
  auto result = [&] {
    const Unlocked unlocked;
    return box.file.explain(direction, space, device, size_bytes, options);
  }();
  return value_or_raise(std::move(result));
}

// --- Job

// Whether it is done within these seconds (None: waits for it). One never submitted is done.
bool wait_for(const JobBox& box, nb::handle seconds) {
  const auto timeout = to_duration(seconds, "timeout", true);
  if (!box.submitted) return true;
  const Job& job = box.job;
  const Unlocked unlocked;
  if (job.done()) return true;
  const auto result = job.result(timeout);
  // A job of the parent process is an error at once in a forked child, and never done.
  return job.done() || (!result && result.error().kind != ErrorKind::deadline_exceeded);
}

bool cancel(const JobBox& box) {
  const Unlocked unlocked;
  return box.submitted && box.job.cancel();
}

nb::tuple progress_of(const JobBox& box) {
  const Progress seen = box.submitted ? box.job.progress() : Progress{};
  return nb::make_tuple(seen.moved_bytes, seen.wanted_bytes);
}

// A call of one range, or of nothing, may come back as a plain transfer; here each has its table.
void complete_ranges(Receipt& receipt, std::size_t count) {
  if (receipt.ranges) return;
  auto table = std::make_shared<RangeTable>();
  receipt.ranges = table;
  if (count == 0) return;
  table->offset.push_back(receipt.file_offset);
  table->wanted_bytes.push_back(receipt.wanted_bytes);
  table->moved_bytes.push_back(receipt.moved_bytes);
}

Receipt job_result(const JobBox& box) {
  bridge().collect();
  auto result = [&] {
    const Unlocked unlocked;
    return box.job.result();
  }();
  Receipt receipt = value_or_raise(std::move(result));
  if (box.ranges) complete_ranges(receipt, *box.ranges);
  return receipt;
}

void on_done(const JobBox& box, nb::handle callable) {
  auto call = share(Lease(Py_NewRef(callable.ptr())));
  const Unlocked unlocked;
  box.job.on_done([call = std::move(call)] {
    Event event;
    event.callable = call;
    bridge().post(std::move(event));
  });
}

// --- Events

// (callable, arguments) of the next call that this thread is to make; waits for it.
nb::tuple next_event() {
  const Event event = bridge().next();
  bridge().collect();
  const nb::object callable = nb::borrow(event.callable->reference());
  if (event.is_progress) {
    return nb::make_tuple(callable, nb::make_tuple(event.moved_bytes, event.wanted_bytes));
  }
  if (event.text) return nb::make_tuple(callable, nb::make_tuple(to_text(*event.text)));
  return nb::make_tuple(callable, nb::make_tuple());
}

// Shows what a callback raised, as Python shows what a destructor raised.
void report_raised(nb::handle exception, nb::handle where) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  PyErr_WriteUnraisable(where.ptr());
}

void bind_job(nb::module_& module) {
  nb::class_<JobBox>(module, "Job")
      .def(nb::init<>())
      .def("wait", wait_for, nb::arg("seconds").none())
      .def("result", job_result)
      .def("done", [](const JobBox& box) { return !box.submitted || box.job.done(); })
      .def("cancel", cancel)
      .def("progress", progress_of)
      .def("on_done", on_done);
}

void bind_file(nb::module_& module) {
  nb::class_<PinBox>(module, "Pin")
      .def("release", &PinBox::release)
      .def("holds", [](const PinBox& box) { return box.pin.holds(); })
      .def("size", [](const PinBox& box) { return box.pin.size_bytes(); });
  nb::class_<FileBox>(module, "File")
      .def("transfer", transfer)
      .def("submit", submit, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
      .def("submit_ranges", submit_ranges)
      .def("submit_placed", submit_placed)
      .def("explain_array", explain_array)
      .def("explain_space", explain_space, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
           nb::arg())
      .def("pin", pin_file, nb::arg().none(), nb::arg())
      .def("close", close_file)
      .def("closed", [](const FileBox& box) { return box.file.closed(); })
      .def("size", file_size)
      .def("path", [](const FileBox& box) { return to_text(box.file.path()); })
      .def("fileno", [](const FileBox& box) { return box.file.descriptor(); });
  module.def("open_path", open_path, nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(),
             nb::arg().none());
  module.def("open_descriptor", open_descriptor, nb::arg(), nb::arg().none(), nb::arg().none(),
             nb::arg().none());
  module.def("read_many", read_files, nb::arg(), nb::arg().none(), nb::arg());
}

}  // namespace

void bind_calls(nb::module_& module) {
  nb::class_<ContextBox>(module, "Context")
      .def("warmup",
           [](const ContextBox& box, std::int32_t device) { warm_up(box.context, device); })
      .def("settings",
           [](const ContextBox& box) { return settings_to_dict(box.context->settings()); });
  module.def("make_context", make_context);
  bind_job(module);
  bind_file(module);
  module.def("next_event", next_event);
  module.def("report_raised", report_raised);
  module.def("close_bridge", [] { bridge().close(); });
  module.def("after_fork", replace_bridge_after_fork);
  module.def("version", [] { return version(); });
}

}  // namespace straightway::python
