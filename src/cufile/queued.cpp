#include "cufile/queued.hpp"

#include <dlfcn.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "api/engine.hpp"
#include "cufile/starter.hpp"
#include "cufile/streams.hpp"
#include "memory/cuda_types.hpp"

namespace straightway::cufile {
namespace {

namespace cuda = memory::cuda;

// One transfer between its call and the end of its place in the stream.
struct Queued {
  std::shared_ptr<Session> session;
  std::shared_ptr<Handle> handle;
  QueuedArguments arguments;
  std::optional<std::size_t> size;  // that were read at the call
  std::optional<off_t> file_offset;
  std::optional<off_t> memory_offset;

  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;

  void start(const std::shared_ptr<Queued>& self);
  void end(ssize_t result);
};

// The documented form: -1 for an error of the system, the negated code for one of cuFile.
ssize_t result_of(const Outcome& outcome, off_t file_offset) {
  if (outcome.result != -1) return outcome.result;
  if (file_offset < 0) return -1;
  const int code = outcome.error_number;
  return code > 5000 && code < 6000 ? -static_cast<ssize_t>(code) : -1;
}

void Queued::end(ssize_t result) {
  *arguments.moved = result;
  const std::lock_guard lock(mutex);
  done = true;
  changed.notify_all();
}

void Queued::start(const std::shared_ptr<Queued>& self) {
  const Transfer transfer{arguments.flow, arguments.base, size ? *size : *arguments.size,
                          file_offset ? *file_offset : *arguments.file_offset,
                          memory_offset ? *memory_offset : *arguments.memory_offset};
  try {
    submit(*session, handle, transfer, false,
           [self, place = transfer.file_offset](const Outcome& outcome, bool) {
             self->end(result_of(outcome, place));
           });
  } catch (const std::exception&) {  // no memory: nothing has begun
    end(-1);
  }
}

// On a thread of the driver, in the stream's turn.
void run_in_stream(void* data) {
  const std::unique_ptr<std::shared_ptr<Queued>> held(static_cast<std::shared_ptr<Queued>*>(data));
  const std::shared_ptr<Queued>& queued = *held;
  try {
    Starter::of_process().post([queued] { queued->start(queued); });
  } catch (const std::exception&) {  // no thread, no memory: nothing may be thrown into the driver
    return queued->end(-1);
  }
  std::unique_lock lock(queued->mutex);
  queued->changed.wait(lock, [&] { return queued->done; });
}

// What the driver is asked; empty where no program here loaded it.
struct StreamCalls {
  cuda::Status (*launch)(cuda::Stream, cuda::HostFunction, void*) = nullptr;
  cuda::Status (*is_capturing)(cuda::Stream, cuda::CaptureStatus*) = nullptr;
};

StreamCalls find_calls() {
  StreamCalls calls;
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return calls;
  calls.launch = reinterpret_cast<decltype(calls.launch)>(::dlsym(library, "cuLaunchHostFunc"));
  calls.is_capturing =
      reinterpret_cast<decltype(calls.is_capturing)>(::dlsym(library, "cuStreamIsCapturing"));
  ::dlclose(library);
  return calls;
}

// First-use costs are paid before the stream stands still, since some of them wait for the device.
void warm_up(const Session& session, void* base) {
  const auto memory = session.context->engine()->find_memory({base, 1}, 1);
  if (memory && memory->space == SpaceKind::cuda) {
    static_cast<void>(session.context->warmup(memory->device));
  }
}

abi::Error launch(const std::shared_ptr<Queued>& queued) {
  const StreamCalls calls = find_calls();
  if (calls.launch == nullptr || calls.is_capturing == nullptr) {  // no GPU: no stream to wait for
    run_in_stream(new std::shared_ptr<Queued>(queued));
    return {};
  }
  const auto stream = static_cast<cuda::Stream>(queued->arguments.stream);
  cuda::CaptureStatus capture = cuda::capture_none;
  cuda::Status status = calls.is_capturing(stream, &capture);
  if (status == cuda::success && capture != cuda::capture_none) {
    return {abi::async_not_supported, 0};
  }
  if (status == cuda::success) {
    auto* held = new std::shared_ptr<Queued>(queued);  // run_in_stream's, where it is taken
    status = calls.launch(stream, run_in_stream, held);
    if (status != cuda::success) delete held;
  }
  if (status == cuda::success) return {};
  return {abi::cuda_driver_error, status};
}

}  // namespace

abi::Error queue(const std::shared_ptr<Session>& session, const QueuedArguments& arguments) {
  const bool pointers = arguments.size != nullptr && arguments.file_offset != nullptr &&
                        arguments.memory_offset != nullptr && arguments.moved != nullptr;
  if (arguments.token == nullptr || arguments.base == nullptr) {
    if (arguments.moved != nullptr) *arguments.moved = -EINVAL;
    return {abi::invalid_value, 0};
  }
  if (!pointers) return {abi::invalid_value, 0};
  const Configuration& config = session->config;
  if (!config.flag(Key::parallel_io) || config.number(Key::max_io_threads) == 0) {
    return {abi::async_not_supported, 0};
  }
  auto queued = std::make_shared<Queued>();
  queued->session = session;
  queued->handle = session->handles.find(arguments.token);
  if (!queued->handle) return {abi::handle_not_registered, 0};
  queued->arguments = arguments;
  const unsigned fixed = session->streams.flags(arguments.stream);
  if ((fixed & fixed_size) != 0) queued->size = *arguments.size;
  if ((fixed & fixed_file_offset) != 0) queued->file_offset = *arguments.file_offset;
  if ((fixed & fixed_memory_offset) != 0) queued->memory_offset = *arguments.memory_offset;
  warm_up(*session, arguments.base);
  return launch(queued);
}

}  // namespace straightway::cufile
