#include "transport/cufile_library.hpp"

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "os/cufile_codes.hpp"
#include "os/nvfs_stats.hpp"

// Member, exported name, signature.
#define STRAIGHTWAY_CUFILE_NEEDED(X)                                           \
  X(get_version, cuFileGetVersion, Status(int*))                               \
  X(driver_open, cuFileDriverOpen, Status())                                   \
  X(driver_close, cuFileDriverClose_v2, Status())                              \
  X(use_count, cuFileUseCount, long())                                         \
  X(get_properties, cuFileDriverGetProperties, Status(Properties*))            \
  X(handle_register, cuFileHandleRegister, Status(void**, Descriptor*))        \
  X(handle_deregister, cuFileHandleDeregister, void(void*))                    \
  X(buffer_register, cuFileBufRegister, Status(const void*, std::size_t, int)) \
  X(buffer_deregister, cuFileBufDeregister, Status(const void*))               \
  X(read, cuFileRead, ssize_t(void*, void*, std::size_t, off_t, off_t))        \
  X(write, cuFileWrite, ssize_t(void*, const void*, std::size_t, off_t, off_t))

// Null in an older library.
#define STRAIGHTWAY_CUFILE_NEWER(X)                                \
  X(set_flag, cuFileSetParameterBool, Status(int, bool))           \
  X(get_flag, cuFileGetParameterBool, Status(int, bool*))          \
  X(get_bar_size, cuFileGetBARSizeInKB, Status(int, std::size_t*)) \
  X(get_stats_level, cuFileGetStatsLevel, Status(int*))            \
  X(set_stats_level, cuFileSetStatsLevel, Status(int))             \
  X(start_stats, cuFileStatsStart, Status())                       \
  X(get_stats, cuFileGetStatsL3, Status(void*))

namespace straightway::transport {
namespace {

// The interface of cufile.h, in declarations of our own.
struct Status {
  int code;  // CUfileOpError
  int cuda_code;
};
struct Descriptor {
  int type;  // 1: a file descriptor
  union {
    int fd;
    void* handle;
  };
  const void* operations;
};
struct Properties {
  unsigned nvfs_major, nvfs_minor;  // 0.0: no nvidia-fs
  std::size_t poll_threshold_kb, max_direct_io_kb;
  unsigned status_flags, control_flags;
  unsigned features, max_device_cache_kb, per_buffer_cache_kb, max_pinned_kb;
  unsigned max_batch_io, max_batch_timeout_ms;
};
static_assert(sizeof(Status) == 8 && sizeof(Descriptor) == 24 && sizeof(Properties) == 56);

constexpr int flag_allow_compat = 1;
constexpr int flag_parallel_io = 4;
constexpr int flag_p2pdma = 7;
constexpr unsigned feature_p2pdma = 1U << 4;
constexpr int first_version = 1080;            // that tells its version
constexpr int last_without_statistics = 1150;  // ends with SIGSEGV at exit when it counts
constexpr int first_with_p2pdma = 1160;
constexpr int first_long_statistics = 1190;

// Where things stand in the statistics of level 3.
constexpr std::size_t stats_bytes = 8192;  // more than any version writes
constexpr std::size_t gpus_offset = 1024;
constexpr std::size_t longer_bytes = 112;  // from first_long_statistics on
constexpr std::size_t gpu_bytes = 248;
constexpr std::size_t most_gpus = 16;

// Below this the library's own memory, registered once, is the better target.
constexpr std::uint64_t least_registered_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t gpu_page_bytes = 64 << 10;
// Without a word from the library: what the smallest BAR1 (256 MiB) has to spare.
constexpr std::uint64_t cautious_window_bytes = std::uint64_t{128} << 20;

thread_local bool inside_library = false;

class Visit {
 public:
  Visit() : before_(std::exchange(inside_library, true)) {}
  ~Visit() { inside_library = before_; }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  const bool before_;
};

Error library_error(const std::string& attempted, int code, std::string why) {
  return {ErrorKind::unsupported,
          ErrorOrigin::cufile,
          code,
          attempted,
          "",
          {},
          std::move(why),
          std::string(code == 0 ? "install one that fits" : os::describe_cufile(code).advice)};
}

// What a transfer answered: bytes moved, -errno or -CUfileOpError. Anything else says only that it
// did not go well.
std::int64_t sound_answer(std::int64_t result, int errno_code, std::uint64_t size_bytes) {
  constexpr std::int64_t last_errno = 4095;
  constexpr std::int64_t last_code = 5999;
  if (result == -1 && errno_code > 0)
    result = -std::int64_t{errno_code};
  else if (result == -1)
    result = -EIO;
  if (result >= 0) return static_cast<std::uint64_t>(result) > size_bytes ? -EIO : result;
  if (result >= -last_errno) return result;
  return result >= -last_code && os::is_cufile_code(static_cast<int>(-result)) ? result : -EIO;
}

}  // namespace

struct CufileLibrary::Functions {
#define STRAIGHTWAY_MEMBER(member, symbol, ...) std::add_pointer_t<__VA_ARGS__> member = nullptr;
  STRAIGHTWAY_CUFILE_NEEDED(STRAIGHTWAY_MEMBER)
  STRAIGHTWAY_CUFILE_NEWER(STRAIGHTWAY_MEMBER)
#undef STRAIGHTWAY_MEMBER
};

bool CufileLibrary::inside() { return inside_library; }

CufileLibrary::CufileLibrary(os::DynamicLibrary library, std::string root)
    : library_(std::move(library)),
      root_(std::move(root)),
      functions_(std::make_unique<Functions>()) {}

CufileLibrary::~CufileLibrary() {
  const Visit visit;
  if (opened_) functions_->driver_close();
}

Result<std::shared_ptr<CufileLibrary>> CufileLibrary::open(const std::string& path, P2pdmaWish wish,
                                                           const std::string& root) {
  const Visit visit;
  auto loaded = os::DynamicLibrary::open_isolated(path);
  if (!loaded) return loaded.error();
  if (loaded->find("straightway_cufile") != nullptr) {
    return library_error("use " + path, 0, "it is Straightway's own");
  }
  std::shared_ptr<CufileLibrary> made(new CufileLibrary(std::move(*loaded), root));
  if (auto found = made->find_functions(); !found) return found.error();
  if (auto open = made->open_driver(wish); !open) return open.error();
  made->start_statistics();
  return made;
}

Result<void> CufileLibrary::find_functions() {
#define STRAIGHTWAY_FILL(member, symbol, ...) \
  {#symbol, reinterpret_cast<void**>(&functions_->member)},
  const os::Symbol needed[] = {STRAIGHTWAY_CUFILE_NEEDED(STRAIGHTWAY_FILL)};
  const os::Symbol newer[] = {STRAIGHTWAY_CUFILE_NEWER(STRAIGHTWAY_FILL)};
#undef STRAIGHTWAY_FILL
  if (auto filled = library_.fill(needed); !filled) return filled.error();
  for (const auto& symbol : newer) *symbol.slot = library_.find(symbol.name);
  const auto status = functions_->get_version(&version_);
  if (status.code != 0) {
    return library_error("use " + library_.name(), status.code,
                         "it does not tell its version (" + os::cufile_text(status.code) + ")");
  }
  if (version_ < first_version) return library_error("use " + library_.name(), 0, "it is too old");
  return {};
}

// Whether it goes by P2PDMA: the switch as it stands, also by settings of the program's own. A
// version that does not show it tells what it could do.
bool CufileLibrary::has_p2pdma(unsigned features) const {
  bool on = false;
  const bool told =
      functions_->get_flag != nullptr && functions_->get_flag(flag_p2pdma, &on).code == 0;
  return told ? on : (features & feature_p2pdma) != 0;
}

// Where nobody opened it before us, it is told neither to cut requests nor to copy in silence.
Result<void> CufileLibrary::open_driver(P2pdmaWish wish) {
  const bool closed = functions_->use_count() == 0 && functions_->set_flag != nullptr;
  const bool switches = closed && wish.on;
  bool was_on = false;  // by a parameter: what the program's configuration has is not read yet
  if (switches && functions_->get_flag != nullptr) functions_->get_flag(flag_p2pdma, &was_on);
  const auto set_flags = [&](bool value) {
    if (switches) functions_->set_flag(flag_p2pdma, !value || was_on || wish.by_user);
    functions_->set_flag(flag_allow_compat, value);
    return functions_->set_flag(flag_parallel_io, value).code == 0;
  };
  cuts_ = !closed || !set_flags(false);
  const auto status = functions_->driver_open();
  if (status.code != 0) {
    if (closed) set_flags(true);  // the program may open it later, and is not to find them off
    return library_error("open the driver of " + library_.name(), status.code,
                         os::cufile_text(status.code));
  }
  opened_ = true;
  Properties properties{};
  const bool told = functions_->get_properties(&properties).code == 0;
  p2pdma_ = told && has_p2pdma(properties.features);
  const bool has_nvfs = properties.nvfs_major != 0 || properties.nvfs_minor != 0;
  if (!told || (!has_nvfs && !p2pdma_)) {
    return library_error("use " + library_.name(), 0,
                         "it sees no nvidia-fs and has P2PDMA switched off, and would copy through "
                         "host memory");
  }
  pinned_limit_bytes_ = std::uint64_t{properties.max_pinned_kb} << 10;
  return {};
}

// Counting that the program has under way serves too, and is left as it is.
void CufileLibrary::start_statistics() {
  if (version_ <= last_without_statistics || functions_->get_stats == nullptr ||
      functions_->set_stats_level == nullptr || functions_->get_stats_level == nullptr ||
      functions_->start_stats == nullptr) {
    return;
  }
  int level = 0;
  if (functions_->get_stats_level(&level).code != 0) return;
  if (level == 0 && functions_->set_stats_level(3).code == 0) level = 3;
  if (level == 3) counts_ = functions_->start_stats().code == 0;
}

Result<void*> CufileLibrary::register_file(int direct_fd) {
  const Visit visit;
  Descriptor descriptor{};
  descriptor.type = 1;
  descriptor.fd = direct_fd;
  void* handle = nullptr;
  const auto status = functions_->handle_register(&handle, &descriptor);
  if (status.code == 0 && handle != nullptr) return handle;
  return library_error("register a file", status.code, os::cufile_text(status.code));
}

void CufileLibrary::deregister_file(void* handle) {
  const Visit visit;
  functions_->handle_deregister(handle);
}

std::int64_t CufileLibrary::move(Direction direction, void* handle, std::uint64_t address,
                                 std::uint64_t size_bytes, std::uint64_t file_offset) {
  const Visit visit;
  auto& counted = tally(direction);
  counted.begun.fetch_add(1);
  errno = 0;
  void* memory = reinterpret_cast<void*>(address);
  const auto offset = static_cast<off_t>(file_offset);
  std::int64_t result = direction == Direction::read
                            ? functions_->read(handle, memory, size_bytes, offset, 0)
                            : functions_->write(handle, memory, size_bytes, offset, 0);
  result = sound_answer(result, errno, size_bytes);
  if (result > 0) counted.bytes.fetch_add(static_cast<std::uint64_t>(result));
  counted.done.fetch_add(1);
  return result;
}

CufileLibrary::Window& CufileLibrary::window(std::int32_t device) {
  const auto [at, fresh] = windows_.try_emplace(device);
  if (!fresh) return at->second;
  std::size_t bar_kb = 0;
  const bool told = functions_->get_bar_size != nullptr &&
                    functions_->get_bar_size(device, &bar_kb).code == 0 && bar_kb > 0;
  // Half of it: other programs and the driver show memory there too.
  const std::uint64_t bar_bytes =
      told ? std::min<std::uint64_t>(bar_kb, std::uint64_t{1} << 50) << 9 : cautious_window_bytes;
  const auto pinned = pinned_limit_bytes_ == 0 ? bar_bytes : pinned_limit_bytes_;
  at->second.limit_bytes = at->second.largest_bytes = std::min(bar_bytes, pinned);
  return at->second;
}

std::uint64_t CufileLibrary::take_room(std::int32_t device, std::uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  auto& room = window(device);
  const auto left = room.limit_bytes - std::min(room.limit_bytes, room.used_bytes);
  auto size = std::min({size_bytes, left, room.largest_bytes});
  if (size < size_bytes) size &= ~(gpu_page_bytes - 1);
  if (size < least_registered_bytes) return 0;
  room.used_bytes += size;
  return size;
}

void CufileLibrary::give_room(std::int32_t device, std::uint64_t size_bytes,
                              std::uint64_t largest_bytes) {
  const std::lock_guard lock(mutex_);
  auto& room = window(device);
  room.used_bytes -= size_bytes;
  room.largest_bytes = std::min(room.largest_bytes, largest_bytes);
}

std::uint64_t CufileLibrary::register_what_fits(std::int32_t device, std::uint64_t address,
                                                std::uint64_t size_bytes) {
  for (auto wanted = size_bytes;;) {
    const auto size = take_room(device, wanted);
    if (size == 0) return 0;
    const auto status = functions_->buffer_register(reinterpret_cast<void*>(address), size, 0);
    if (status.code == 0) return size;
    const bool may_fit = os::lacks_room(status.code);
    give_room(device, size, may_fit ? size / 2 : UINT64_MAX);
    if (!may_fit) return 0;
    wanted = size / 2;
  }
}

std::uint64_t CufileLibrary::register_memory(std::int32_t device, std::uint64_t address,
                                             std::uint64_t size_bytes) {
  const Visit visit;
  std::unique_lock lock(mutex_);
  auto at = stretches_.end();
  for (bool fresh = false; !fresh;) {
    std::tie(at, fresh) = stretches_.try_emplace(address);
    if (fresh) break;
    if (at->second.settled) {
      ++at->second.users;
      return std::min(size_bytes, at->second.size_bytes);
    }
    settled_.wait(lock);
  }
  lock.unlock();
  const auto size = register_what_fits(device, address, size_bytes);
  lock.lock();
  at->second.size_bytes = size;
  at->second.settled = true;
  settled_.notify_all();
  return size;
}

void CufileLibrary::deregister_memory(std::int32_t device, std::uint64_t address) {
  const Visit visit;
  std::unique_lock lock(mutex_);
  const auto at = stretches_.find(address);
  if (--at->second.users > 0) return;
  at->second.settled = false;
  if (const auto size = at->second.size_bytes; size > 0) {
    lock.unlock();
    functions_->buffer_deregister(reinterpret_cast<void*>(address));
    give_room(device, size, UINT64_MAX);
    lock.lock();
  }
  stretches_.erase(at);
  settled_.notify_all();
}

void CufileLibrary::read_cufile_counts(Direction direction, CufileCounts& counts) {
  if (!counts_) return;
  alignas(8) std::array<unsigned char, stats_bytes> stats{};
  if (functions_->get_stats(stats.data()).code != 0) return;
  const auto at = gpus_offset + (version_ >= first_long_statistics ? longer_bytes : 0);
  std::uint32_t gpus = 0;
  std::memcpy(&gpus, stats.data() + at, sizeof gpus);
  // n, p2pdma, nvfs and posix of reads, and of writes.
  const std::size_t first = direction == Direction::read ? 56 : 160;
  for (std::size_t i = 0; i < std::min<std::size_t>(gpus, most_gpus); ++i) {
    std::array<std::uint64_t, 3> ways{};
    std::memcpy(ways.data(), stats.data() + at + 8 + i * gpu_bytes + first, sizeof ways);
    counts.p2pdma += ways[0];
    counts.nvfs += ways[1];
    counts.posix += ways[2];
  }
  counts.cufile_counts = true;
}

CufileCounts CufileLibrary::counts(Direction direction) {
  const Visit visit;
  const auto& counted = tally(direction);
  CufileCounts counts;
  counts.p2pdma_on = p2pdma_;
  counts.knows_p2pdma = p2pdma_ || version_ >= first_with_p2pdma;
  counts.calls = counted.done.load();
  counts.bytes = counted.bytes.load();
  if (const auto kernel = os::read_nvfs_stats(root_)) {
    const auto& of = direction == Direction::read ? kernel->reads : kernel->writes;
    counts.kernel_counts = kernel->counted;
    counts.kernel_calls = of.calls;
    counts.kernel_failed = of.failed;
    counts.kernel_mib = of.mib;
  }
  read_cufile_counts(direction, counts);
  counts.quiet = counted.begun.load() == counts.calls;
  return counts;
}

Result<std::shared_ptr<CufileFile>> CufileFile::make(std::shared_ptr<CufileLibrary> library,
                                                     int direct_fd) {
  auto handle = library->register_file(direct_fd);
  if (!handle) return handle.error();
  return std::shared_ptr<CufileFile>(new CufileFile(std::move(library), *handle));
}

void CufileFile::close() {
  if (void* handle = std::exchange(handle_, nullptr)) library_->deregister_file(handle);
}

}  // namespace straightway::transport
