// Driver, handles, buffers, transfers.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

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

// By its own threads a large request goes in parts, each of which counts.
std::uint64_t parts_of(std::size_t size, bool parallel) {
  constexpr std::size_t threshold = 8 << 20;
  constexpr std::size_t parallelism = 4;
  if (!parallel || size <= threshold) return 1;
  return std::min(parallelism, (size + threshold - 1) / threshold);
}

// Under the lock.
void count(Way way, std::size_t wanted, std::size_t moved) {
  State& s = state();
  const auto parts = parts_of(wanted, s.parallel_io);
  auto& of = s.counters[way == Way::read ? 0 : 1];
  if (s.silent || (!goes_by_p2pdma() && !goes_by_nvfs())) {
    of.posix += parts;
    return;
  }
  (goes_by_p2pdma() ? of.p2pdma : of.nvfs) += parts;
  if (goes_by_p2pdma() || s.lying) return;  // nvidia-fs sees nothing of it
  auto& kernel = s.kernel[way == Way::read ? 0 : 1];
  kernel.nvfs += parts;
  kernel.bytes += moved;
  write_kernel_stats();
}

// Device memory of any alignment will do: by way of memory of the library's own.
ssize_t move_once(Way way, int fd, char* at, std::size_t size, off_t offset) {
  constexpr std::size_t block = 4096;
  if (reinterpret_cast<std::uintptr_t>(at) % block == 0) {
    return way == Way::read ? pread(fd, at, size, offset) : pwrite(fd, at, size, offset);
  }
  const std::size_t room = (size + block - 1) / block * block;
  const std::unique_ptr<char, decltype(&std::free)> own(
      static_cast<char*>(std::aligned_alloc(block, room)), std::free);
  if (way == Way::write) {
    std::memcpy(own.get(), at, size);
    return pwrite(fd, own.get(), size, offset);
  }
  const ssize_t moved = pread(fd, own.get(), size, offset);
  if (moved > 0) std::memcpy(at, own.get(), static_cast<std::size_t>(moved));
  return moved;
}

// Until all is moved, the file ends, or an error.
ssize_t move_bytes(Way way, int fd, char* at, std::size_t size, off_t offset) {
  std::size_t moved = 0;
  while (moved < size) {
    const auto place = offset + static_cast<off_t>(moved);
    const ssize_t step = move_once(way, fd, at + moved, size - moved, place);
    if (step < 0 && errno == EINTR) continue;
    if (step < 0) return moved != 0 ? static_cast<ssize_t>(moved) : -1;
    if (step == 0) break;
    moved += static_cast<std::size_t>(step);
  }
  return static_cast<ssize_t>(moved);
}

}  // namespace

bool goes_by_p2pdma() { return state().p2pdma && state().has_p2pdma != 0; }

// The switch goes before it, whether P2PDMA is there or not.
bool goes_by_nvfs() { return state().direct && !state().p2pdma; }

State& state() {
  static State* const made = [] {
    auto* fresh = new State;
    fresh->register_answer = number("FAKE_CUFILE_REGISTER", 0);
    fresh->direct = number("FAKE_CUFILE_DIRECT", 0) != 0;
    fresh->has_p2pdma = number("FAKE_CUFILE_P2PDMA", 0);
    const char* wish = std::getenv("CUFILE_USE_PCIP2PDMA");
    fresh->user_p2pdma = fresh->p2pdma = wish != nullptr && std::string(wish) == "true";
    fresh->version = number("FAKE_CUFILE_VERSION", usual_version);
    fresh->open_answer = number("FAKE_CUFILE_OPEN", 0);
    fresh->silent = number("FAKE_CUFILE_SILENT", 0) != 0;
    fresh->reenter = number("FAKE_CUFILE_REENTER", 0) != 0;
    if (const char* path = std::getenv("FAKE_CUFILE_KERNEL_STATS")) {
      fresh->kernel_path = path;
      fresh->kernel_counts = true;
    }
    return fresh;
  }();
  return *made;
}

ssize_t transfer(Way way, void* handle, void* memory, std::size_t size, off_t file_offset,
                 off_t memory_offset) {
  State& s = state();
  auto* file = static_cast<File*>(handle);
  int fd = -1;
  bool registered = false;
  {
    Lock lock(s.mutex);
    if (!s.handles.contains(file)) return -handle_not_registered;
    fd = file->fd;
    if (goes_by_p2pdma() && s.has_p2pdma == 2) {
      errno = EREMOTEIO;
      return -1;
    }
    registered = s.buffers.contains(memory);
    if (registered) ++s.users[memory];
    if (s.holding) {
      const auto ticket = s.tickets++;
      ++s.held;
      s.let_go.wait(lock, [&] { return !s.holding || ticket < s.let_past; });
      --s.held;
    }
    if (s.told_transfers > 0) {
      --s.told_transfers;
      if (s.told_result < 0 || s.told_verbatim) {
        if (registered) --s.users[memory];
        errno = s.told_errno;
        return s.told_result;
      }
      size = std::min(size, static_cast<std::size_t>(s.told_result));
    }
    ++s.calls;
    s.largest_call = std::max<std::uint64_t>(s.largest_call, size);
  }
  const bool sound = file_offset >= 0 && memory_offset >= 0;
  char* const at = sound ? bytes_at(static_cast<char*>(memory) + memory_offset, size) : nullptr;
  const ssize_t moved =
      sound ? move_bytes(way, fd, at, size, file_offset) : -ssize_t{invalid_value};
  const int error = errno;
  {
    const Lock lock(s.mutex);
    if (registered) --s.users[memory];
    if (sound) count(way, size, moved > 0 ? static_cast<std::size_t>(moved) : 0);
  }
  errno = error;
  return moved;
}

void write_kernel_stats() {
  const State& s = state();
  if (s.kernel_path.empty()) return;
  // Renamed over whatever is there: never over a device or a folder.
  std::error_code ignored;
  if (std::filesystem::exists(s.kernel_path, ignored) &&
      !std::filesystem::is_regular_file(s.kernel_path, ignored)) {
    return;
  }
  const auto line = [&](const char* name, const char* mib, const Counter& of) {
    std::string text = std::string(name) + " : ";
    if (s.kernel_counts) {
      const auto n = std::to_string(of.nvfs);
      text += "n=" + n + " ok=" + n + " err=0 " + mib + "=" + std::to_string(of.bytes >> 20);
    } else {
      text += "err=0";
    }
    return text + " io_state_err=0\n";
  };
  // In one piece: whoever reads sees all of it or what was there before.
  const std::string fresh = s.kernel_path + ".new";
  std::ofstream(fresh) << "GDS Version: 1.17.1.22\nNVFS statistics(ver: 4.0)\n"
                       << "NVFS Driver(version: 2.28.4)\nIO stats: "
                       << (s.kernel_counts ? "Enabled" : "Disabled")
                       << ", peer IO stats: Disabled\n"
                       << line("Reads          ", "readMiB", s.kernel[0])
                       << line("Writes         ", "writeMiB", s.kernel[1]);
  std::rename(fresh.c_str(), s.kernel_path.c_str());
}

}  // namespace fake

using namespace fake;

// The mark by which a loader knows the stand-in.
FAKE_EXPORT int straightway_fake_cufile() { return 1; }

FAKE_EXPORT CufileError cuFileDriverOpen() {
  if (number("FAKE_CUFILE_WSL", 0) != 0) std::abort();
  const Lock lock(state().mutex);
  if (state().open_answer != success) return answer(state().open_answer);
  ++state().open_count;
  return answer(success);
}

FAKE_EXPORT CufileError cuFileDriverClose_v2() {
  const Lock lock(state().mutex);
  if (state().open_count == 0) return answer(driver_not_initialised);
  if (--state().open_count == 0) {
    state().allow_compat = state().parallel_io = true;
    state().p2pdma = state().user_p2pdma;
    state().p2pdma_set = false;
    state().counting = false;
    state().stats_level = 0;
  }
  return answer(success);
}

FAKE_EXPORT CufileError cuFileDriverClose() { return cuFileDriverClose_v2(); }

FAKE_EXPORT long cuFileUseCount() {
  const Lock lock(state().mutex);
  return static_cast<long>(state().open_count);
}

FAKE_EXPORT CufileError cuFileGetVersion(int* version) {
  const Lock lock(state().mutex);
  ++state().version_calls;
  if (state().version_answer == success) *version = state().version;
  return answer(state().version_answer);
}

FAKE_EXPORT CufileError cuFileSetParameterBool(int parameter, bool value) {
  const Lock lock(state().mutex);
  if (state().open_count != 0) return answer(driver_already_open);
  if (parameter == 1) state().allow_compat = value;
  if (parameter == 4) state().parallel_io = value;
  if (parameter == 7) {
    state().p2pdma = value;
    state().p2pdma_set = true;
  }
  return answer(success);
}

FAKE_EXPORT CufileError cuFileGetParameterBool(int parameter, bool* value) {
  const Lock lock(state().mutex);
  if (value == nullptr || (parameter != 1 && parameter != 4 && parameter != 7)) {
    return answer(invalid_value);
  }
  const bool shows_p2pdma = state().open_count != 0 || state().p2pdma_set;
  *value = parameter == 1   ? state().allow_compat
           : parameter == 4 ? state().parallel_io
                            : shows_p2pdma && state().p2pdma;
  return answer(success);
}

FAKE_EXPORT CufileError cuFileGetBARSizeInKB(int device, std::size_t* kib) {
  const Lock lock(state().mutex);
  if (device < 0 || kib == nullptr) return answer(invalid_value);
  *kib = state().bar_kib;
  return answer(success);
}

FAKE_EXPORT CufileError cuFileGetStatsLevel(int* level) {
  const Lock lock(state().mutex);
  *level = state().stats_level;
  return answer(success);
}

FAKE_EXPORT CufileError cuFileSetStatsLevel(int level) {
  const Lock lock(state().mutex);
  if (level < 0 || level > 3) return answer(invalid_value);
  state().stats_level = level;
  return answer(success);
}

FAKE_EXPORT CufileError cuFileStatsStart() {
  const Lock lock(state().mutex);
  if (state().stats_level == 0) return answer(5030);
  state().counting = true;
  return answer(success);
}

// One GPU's record of level 3, where this version has it; nothing else is written.
FAKE_EXPORT CufileError cuFileGetStatsL3(void* out) {
  const Lock lock(state().mutex);
  const State& s = state();
  if (out == nullptr || !s.counting || s.stats_level < 3) return answer(invalid_value);
  auto* at = static_cast<unsigned char*>(out) + 1024 + (s.version >= 1190 ? 112 : 0);
  const std::uint32_t gpus = 1;
  std::memcpy(at, &gpus, sizeof gpus);
  for (const std::size_t i : {0, 1}) {
    const auto& of = s.counters[i];
    const std::uint64_t ways[] = {of.nvfs + of.p2pdma + of.posix, of.p2pdma, of.nvfs, of.posix};
    std::memcpy(at + 8 + (i == 0 ? 48 : 152), ways, sizeof ways);
  }
  return answer(success);
}

FAKE_EXPORT CufileError cuFileDriverGetProperties(CufileProperties* out) {
  const Lock lock(state().mutex);
  *out = {};
  out->major_version = state().direct ? 2 : 0;
  out->minor_version = state().direct ? 28 : 0;
  out->features = goes_by_p2pdma() ? 0x1f : 0xf;
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
  // A library that copies in silence heeds nothing.
  const bool direct = goes_by_p2pdma() || goes_by_nvfs();
  if (!state().allow_compat && !direct && !state().silent) return answer(io_not_supported);
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
  State& s = state();
  if (s.buffer_answer != success) return answer(s.buffer_answer);
  if (size > s.register_limit || (s.registered + size) >> 10 > s.bar_kib) {
    return answer(invalid_mapping_size);
  }
  if (!s.buffers.emplace(memory, size).second) return answer(already_registered);
  s.registered += size;
  s.most_registered = std::max(s.most_registered, s.registered);
  ++s.registrations;
  return answer(success);
}

FAKE_EXPORT CufileError cuFileBufDeregister(const void* memory) {
  const Lock lock(state().mutex);
  const auto found = state().buffers.find(memory);
  if (found == state().buffers.end()) return answer(not_registered);
  ++state().deregistrations;
  if (state().users[memory] > 0) ++state().torn;
  state().registered -= found->second;
  state().buffers.erase(found);
  return answer(success);
}

FAKE_EXPORT ssize_t cuFileRead(void* handle, void* memory, std::size_t size, off_t file_offset,
                               off_t memory_offset) {
  note_caller(__builtin_return_address(0));
  call_itself(static_cast<File*>(handle), memory);
  return transfer(Way::read, handle, memory, size, file_offset, memory_offset);
}

FAKE_EXPORT ssize_t cuFileWrite(void* handle, const void* memory, std::size_t size,
                                off_t file_offset, off_t memory_offset) {
  note_caller(__builtin_return_address(0));
  return transfer(Way::write, handle, const_cast<void*>(memory), size, file_offset, memory_offset);
}
