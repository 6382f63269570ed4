// Transfers in stream order, and batches. Batches are done when submitted.
#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "state.hpp"

using namespace fake;

namespace {

struct Queued {
  Way way;
  void* handle;
  void* memory;
  std::size_t* size;
  off_t* file_offset;
  off_t* memory_offset;
  ssize_t* moved;
};

// Sizes and offsets are read only now, as in life.
void run_queued(void* data) {
  auto* queued = static_cast<Queued*>(data);
  *queued->moved = transfer(queued->way, queued->handle, queued->memory, *queued->size,
                            *queued->file_offset, *queued->memory_offset);
  delete queued;
}

CufileError queue(const Queued& what, void* stream) {
  using Launch = int (*)(void* stream, void (*function)(void*), void* data);
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto launch =
      cuda != nullptr ? reinterpret_cast<Launch>(dlsym(cuda, "cuLaunchHostFunc")) : nullptr;
  auto* queued = new Queued(what);
  const int status = launch != nullptr ? launch(stream, run_queued, queued) : 0;
  if (launch == nullptr) run_queued(queued);
  if (status != 0) delete queued;
  return {status == 0 ? 0 : 5011, status};
}

struct Batch {
  std::vector<CufileBatchEvent> done;
};

}  // namespace

FAKE_EXPORT CufileError cuFileReadAsync(void* handle, void* memory, std::size_t* size,
                                        off_t* file_offset, off_t* memory_offset, ssize_t* moved,
                                        void* stream) {
  return queue({Way::read, handle, memory, size, file_offset, memory_offset, moved}, stream);
}

FAKE_EXPORT CufileError cuFileWriteAsync(void* handle, void* memory, std::size_t* size,
                                         off_t* file_offset, off_t* memory_offset, ssize_t* moved,
                                         void* stream) {
  return queue({Way::write, handle, memory, size, file_offset, memory_offset, moved}, stream);
}

FAKE_EXPORT CufileError cuFileStreamRegister(void*, unsigned) { return {0, 0}; }
FAKE_EXPORT CufileError cuFileStreamDeregister(void*) { return {0, 0}; }

FAKE_EXPORT CufileError cuFileBatchIOSetUp(void** out, unsigned) {
  *out = new Batch;
  return {0, 0};
}

FAKE_EXPORT CufileError cuFileBatchIOSubmit(void* handle, unsigned count,
                                            CufileBatchRequest* requests, unsigned) {
  auto* batch = static_cast<Batch*>(handle);
  for (unsigned i = 0; i < count; ++i) {
    const CufileBatchRequest& request = requests[i];
    const ssize_t moved =
        transfer(request.opcode == 0 ? Way::read : Way::write, request.file, request.memory,
                 request.size, request.file_offset, request.memory_offset);
    batch->done.push_back(
        {request.cookie, moved < 0 ? 0x40 : 0x10, static_cast<std::size_t>(moved)});
  }
  return {0, 0};
}

FAKE_EXPORT CufileError cuFileBatchIOGetStatus(void* handle, unsigned, unsigned* count,
                                               CufileBatchEvent* events, struct timespec*) {
  auto* batch = static_cast<Batch*>(handle);
  unsigned given = 0;
  while (given < *count && !batch->done.empty()) {
    events[given++] = batch->done.front();
    batch->done.erase(batch->done.begin());
  }
  *count = given;
  return {0, 0};
}

FAKE_EXPORT CufileError cuFileBatchIOCancel(void*) { return {0, 0}; }
FAKE_EXPORT void cuFileBatchIODestroy(void* handle) { delete static_cast<Batch*>(handle); }
