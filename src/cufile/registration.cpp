#include "cufile/registration.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <utility>

#include "api/call.hpp"
#include "api/engine.hpp"
#include "api/vendor_call.hpp"
#include "memory/cuda_space.hpp"
#include "memory/cuda_types.hpp"
#include "os/system_text.hpp"

namespace straightway::cufile {
namespace {

namespace cuda = memory::cuda;

// A function of the CUDA driver that was loaded before, or null.
template <class F>
F find_cuda(const char* name) {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  const auto found = reinterpret_cast<F>(::dlsym(library, name));
  ::dlclose(library);
  return found;
}

bool is_managed(const void* base) {
  using Ask = cuda::Status (*)(void*, cuda::PointerAttribute, cuda::DevicePointer);
  const auto ask = find_cuda<Ask>("cuPointerGetAttribute");
  unsigned managed = 0;
  return ask != nullptr &&
         ask(&managed, cuda::attribute_is_managed, reinterpret_cast<std::uintptr_t>(base)) ==
             cuda::success &&
         managed != 0;
}

abi::Code code_of_open(const Error& error) {
  return error.kind == ErrorKind::too_many_files ? abi::getnewfd_failed : abi::internal_error;
}

// Without the compatibility mode a file needs a direct path, and the vendor's library must take it.
abi::Code check_way(Session& session, const Handle& handle) {
  const CufileSettings& layer = handle.file->settings->cufile;
  if (layer.allow_compat_mode.value || layer.force_compat_mode.value) return abi::success;
  constexpr std::uint64_t block = 4096;
  const MemoryRange memory{SpaceKind::cuda, 0, 0, block};
  const CallRange range{FileUse(handle.file), 0, block, {}};
  auto plan = plan_call(Direction::read, range, handle.file->settings, &memory);
  if (plan) try_vendor(*plan, range);
  if (plan && plan->failure != Reason::refused_compat) return abi::success;
  const auto route = layer.use_pci_p2pdma.value ? Route::p2pdma : Route::nvfs;
  const auto why = plan ? plan::sentence(plan->refused[index(route)], route, plan->file.get(),
                                         plan->machine.get(), nullptr)
                        : plan.error().message();
  session.log.write(
      LogLevel::error,
      fmt::format("fd {}: no direct path, and allow_compat_mode is false: {}", handle.fd, why));
  return abi::io_not_supported;
}

// The name of the file that a descriptor stands for, where it still is that file's.
std::string name_of(int fd, const struct stat& status) {
  std::error_code failed;
  const auto link = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), failed);
  struct stat named{};
  const bool same = !failed && ::stat(link.c_str(), &named) == 0 && named.st_dev == status.st_dev &&
                    named.st_ino == status.st_ino;
  return same ? link.string() : "";
}

abi::Code register_descriptor(Session& session, int fd, void** token) {
  if (const auto refused = refuse_descriptor(fd)) return *refused;
  if (session.handles.has_fd(fd)) return abi::handle_already_registered;
  auto handle = std::make_shared<Handle>();
  handle->fd = fd;
  handle->access = ::fcntl(fd, F_GETFL) & O_ACCMODE;
  struct stat status{};
  if (::fstat(fd, &status) == 0) {
    handle->device = status.st_dev;
    handle->inode = status.st_ino;
  }
  OpenOptions options;
  options.door = Door::cufile;
  auto file = OpenFile::adopt(fd, options, session.context->engine());
  if (!file) return code_of_open(file.error());
  handle->file = std::move(*file);
  auto settings = std::make_shared<Settings>(*handle->file->settings);
  settings->cufile = session.layer();
  handle->file->settings = std::move(settings);
  if (std::string name = name_of(fd, status); !name.empty()) {
    auto facts = std::make_shared<FileFacts>(*handle->file->facts);
    facts->path = std::move(name);
    handle->file->facts = std::move(facts);
  }
  if (const auto code = check_way(session, *handle); code != abi::success) {
    return code;
  }
  void* given = session.handles.add(handle);
  if (given == nullptr) return abi::handle_already_registered;
  *token = given;
  return abi::success;
}

abi::Code register_userspace(Session& session, const abi::Descriptor& descriptor, void** token) {
  if (descriptor.operations == nullptr) return abi::io_not_supported;
  auto handle = std::make_shared<Handle>();
  handle->access = O_RDWR;
  handle->userspace = true;
  handle->user = descriptor.pointer;
  handle->operations = *descriptor.operations;
  *token = session.handles.add(handle);
  return abi::success;
}

}  // namespace

abi::Code register_handle(Session& session, const abi::Descriptor& descriptor, void** token) {
  abi::Code code = abi::io_not_supported;
  if (descriptor.type == abi::opaque_fd) {
    code = register_descriptor(session, descriptor.fd, token);
  } else if (descriptor.type == abi::userspace_fs) {
    code = register_userspace(session, descriptor, token);
  }
  session.statistics.count_result(&abi::Level1::handle_register, code == abi::success);
  return code;
}

void deregister_handle(Session& session, void* token) {
  const auto handle = session.handles.remove(token);
  session.statistics.count_result(&abi::Level1::handle_deregister, handle != nullptr);
  if (handle && handle->file) handle->file->close();
}

abi::Code register_buffer(Session& session, const void* base, std::size_t size_bytes) {
  const auto add = [&] {
    if (base == nullptr || size_bytes == 0) return abi::invalid_value;
    auto memory =
        session.context->engine()->find_memory({const_cast<void*>(base), size_bytes}, size_bytes);
    if (!memory) return abi::cuda_pointer_range_error;
    const bool host = memory->space == SpaceKind::host;
    if (!host && is_managed(base)) return abi::cuda_memory_type_invalid;
    if (host && !session.config.flag(Key::allow_system_memory)) {
      return abi::cuda_memory_type_invalid;
    }
    constexpr std::uint64_t most_kb = std::uint64_t{1} << 53;
    const std::uint64_t limit_kb = std::min(session.pinned_limit_kb.load(), most_kb);
    const abi::Code code = session.buffers.add(*memory, limit_kb << 10);
    if (code == abi::success && session.statistics.counting()) {
      if (memory->device >= 0) session.show_gpus();
      session.statistics.count_buffer(memory->device, size_bytes, true);
    }
    return code;
  };
  const abi::Code code = add();
  session.statistics.count_result(&abi::Level1::buffer_register, code == abi::success);
  return code;
}

abi::Code deregister_buffer(Session& session, const void* base) {
  if (base == nullptr) return abi::invalid_value;
  const auto memory = session.buffers.remove(base);
  session.statistics.count_result(&abi::Level1::buffer_deregister, memory.has_value());
  if (!memory) return abi::memory_not_registered;
  session.statistics.count_buffer(memory->device, memory->size_bytes, false);
  return abi::success;
}

std::optional<std::uint64_t> bar_size_kb(int device) {
  if (device < 0 || device >= memory::load_cuda().state.devices) return std::nullopt;
  using Ask = cuda::Status (*)(char*, int, cuda::Device);
  const auto ask = find_cuda<Ask>("cuDeviceGetPCIBusId");
  std::array<char, 32> name{};
  if (ask == nullptr || ask(name.data(), name.size(), device) != cuda::success) return 0;
  std::string bus_id = name.data();
  std::ranges::transform(bus_id, bus_id.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
  // The second line: first and last address, and flags, of the BAR that shows the memory.
  const auto text = os::read_text("/sys/bus/pci/devices/" + bus_id + "/resource").value_or("");
  std::string_view rest = text;
  os::take_field(rest, '\n');
  std::string_view line = os::take_field(rest, '\n');
  const auto hex = [](std::string_view field) {
    std::uint64_t value = 0;
    if (field.starts_with("0x")) field.remove_prefix(2);
    std::from_chars(field.data(), field.data() + field.size(), value, 16);
    return value;
  };
  const std::uint64_t first = hex(os::take_field(line, ' '));
  const std::uint64_t last = hex(os::take_field(line, ' '));
  return last > first ? (last - first + 1) >> 10 : 0;
}

std::array<char, 16> device_uuid(std::int32_t device) {
  using Ask = cuda::Status (*)(cuda::Uuid*, cuda::Device);
  const auto ask = find_cuda<Ask>("cuDeviceGetUuid_v2");
  cuda::Uuid uuid{};
  std::array<char, 16> bytes{};
  if (ask != nullptr && ask(&uuid, device) == cuda::success) {
    std::ranges::copy(uuid.bytes, bytes.begin());
  }
  return bytes;
}

}  // namespace straightway::cufile
