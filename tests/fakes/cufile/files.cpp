// Driver, handles, buffers, transfers.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "state.hpp"

namespace fake {
namespace {

int number(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::atoi(text) : otherwise;
}

CufileError answer(int code) { return {code, 0}; }

// Where the CPU finds the bytes: behind a device address of the simulated GPU, else right there.
char* bytes_at(void* memory, std::size_t size) {
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (cuda == nullptr) return static_cast<char*>(memory);
  using Shadow = void* (*)(unsigned long long, std::size_t);
  const auto shadow = reinterpret_cast<Shadow>(dlsym(cuda, "fake_cuda_shadow"));
  void* found =
      shadow != nullptr ? shadow(reinterpret_cast<std::uintptr_t>(memory), size) : nullptr;
  dlclose(cuda);
  return static_cast<char*>(found != nullptr ? found : memory);
}

// Until all is moved, the file ends, or an error.
ssize_t move_bytes(Way way, int fd, char* at, std::size_t size, off_t offset) {
  std::size_t moved = 0;
  while (moved < size) {
    const auto place = offset + static_cast<off_t>(moved);
    const ssize_t step = way == Way::read ? pread(fd, at + moved, size - moved, place)
                                          : pwrite(fd, at + moved, size - moved, place);
    if (step < 0 && errno == EINTR) continue;
    if (step < 0) return moved != 0 ? static_cast<ssize_t>(moved) : -1;
    if (step == 0) break;
    moved += static_cast<std::size_t>(step);
  }
  return static_cast<ssize_t>(moved);
}

}  // namespace

State& state() {
  static State* const made = [] {
    auto* fresh = new State;
    fresh->register_answer = number("FAKE_CUFILE_REGISTER", 0);
    fresh->direct = number("FAKE_CUFILE_DIRECT", 0) != 0;
    return fresh;
  }();
  return *made;
}

ssize_t transfer(Way way, void* handle, void* memory, std::size_t size, off_t file_offset,
                 off_t memory_offset) {
  State& s = state();
  auto* file = static_cast<File*>(handle);
  int fd = -1;
  {
    const Lock lock(s.mutex);
    if (!s.handles.contains(file)) return -handle_not_registered;
    fd = file->fd;
    if (s.told_transfers > 0) {
      --s.told_transfers;
      if (s.told_result < 0) {
        errno = s.told_errno;
        return s.told_result;
      }
      size = std::min(size, static_cast<std::size_t>(s.told_result));
    }
    ++(s.direct ? s.nvfs : s.posix);
  }
  if (file_offset < 0 || memory_offset < 0) return -invalid_value;
  return move_bytes(way, fd, bytes_at(static_cast<char*>(memory) + memory_offset, size), size,
                    file_offset);
}

}  // namespace fake

using namespace fake;

// The mark by which a loader knows the stand-in.
FAKE_EXPORT int straightway_fake_cufile() { return 1; }

FAKE_EXPORT CufileError cuFileDriverOpen() {
  if (number("FAKE_CUFILE_WSL", 0) != 0) std::abort();
  const Lock lock(state().mutex);
  ++state().open_count;
  return answer(success);
}

FAKE_EXPORT CufileError cuFileDriverClose_v2() {
  const Lock lock(state().mutex);
  if (state().open_count == 0) return answer(driver_not_initialised);
  --state().open_count;
  return answer(success);
}

FAKE_EXPORT CufileError cuFileDriverClose() { return cuFileDriverClose_v2(); }

FAKE_EXPORT long cuFileUseCount() {
  const Lock lock(state().mutex);
  return static_cast<long>(state().open_count);
}

FAKE_EXPORT CufileError cuFileGetVersion(int* version) {
  *version = number("FAKE_CUFILE_VERSION", 1150);
  return answer(success);
}

FAKE_EXPORT CufileError cuFileDriverGetProperties(CufileProperties* out) {
  const Lock lock(state().mutex);
  *out = {};
  out->major_version = state().direct ? 2 : 0;
  out->minor_version = state().direct ? 28 : 0;
  out->max_direct_io_kib = 16384;
  out->max_device_cache_kib = 131072;
  out->per_buffer_cache_kib = 1024;
  out->max_pinned_kib = 33554432;
  out->max_batch_io = 128;
  return answer(success);
}

FAKE_EXPORT CufileError cuFileDriverSetPollMode(bool, std::size_t) { return answer(success); }
FAKE_EXPORT CufileError cuFileDriverSetMaxDirectIOSize(std::size_t) { return answer(success); }
FAKE_EXPORT CufileError cuFileDriverSetMaxCacheSize(std::size_t) { return answer(success); }
FAKE_EXPORT CufileError cuFileDriverSetMaxPinnedMemSize(std::size_t) { return answer(success); }

FAKE_EXPORT CufileError cuFileHandleRegister(void** out, CufileDescriptor* descriptor) {
  const Lock lock(state().mutex);
  if (state().register_answer != success) return answer(state().register_answer);
  if (descriptor == nullptr || descriptor->type != 1) return answer(invalid_value);
  auto* file = new File{descriptor->fd};
  state().handles.insert(file);
  *out = file;
  return answer(success);
}

FAKE_EXPORT void cuFileHandleDeregister(void* handle) {
  const Lock lock(state().mutex);
  auto* file = static_cast<File*>(handle);
  if (state().handles.erase(file) != 0) delete file;
}

FAKE_EXPORT CufileError cuFileBufRegister(const void* memory, std::size_t size, int) {
  const Lock lock(state().mutex);
  return answer(state().buffers.emplace(memory, size).second ? success : already_registered);
}

FAKE_EXPORT CufileError cuFileBufDeregister(const void* memory) {
  const Lock lock(state().mutex);
  return answer(state().buffers.erase(memory) != 0 ? success : not_registered);
}

FAKE_EXPORT ssize_t cuFileRead(void* handle, void* memory, std::size_t size, off_t file_offset,
                               off_t memory_offset) {
  return transfer(Way::read, handle, memory, size, file_offset, memory_offset);
}

FAKE_EXPORT ssize_t cuFileWrite(void* handle, const void* memory, std::size_t size,
                                off_t file_offset, off_t memory_offset) {
  return transfer(Way::write, handle, const_cast<void*>(memory), size, file_offset, memory_offset);
}
