#include "os/dynamic_library.hpp"

#include <dlfcn.h>
#include <link.h>

namespace straightway::os {
namespace {

// The loader's last complaint; it may have none.
std::string loader_text() {
  const char* text = dlerror();
  return text != nullptr ? text : "the loader gave no reason";
}

}  // namespace

// The sanitizers' runtimes end programs that ask for it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int prefer_own_symbols = 0;
#else
constexpr int prefer_own_symbols = RTLD_DEEPBIND;
#endif

Result<DynamicLibrary> DynamicLibrary::open(const std::string& name) {
  return load(name, RTLD_NOW | RTLD_LOCAL);
}

Result<DynamicLibrary> DynamicLibrary::open_isolated(const std::string& path) {
  if (path.empty() || path.front() != '/') {
    return Error{.kind = ErrorKind::invalid_argument,
                 .attempted = "load " + path,
                 .path = {},
                 .offset = {},
                 .why = "it is no absolute path",
                 .advice = "give the library's whole path"};
  }
  auto loaded = load("/." + path, RTLD_NOW | RTLD_LOCAL | prefer_own_symbols);
  if (loaded) loaded->name_ = path;
  return loaded;
}

// An audit library sees dlopen's caller, and asks by the place that it returns to: nothing here may
// become a jump.
Result<DynamicLibrary> DynamicLibrary::load(const std::string& name, int flags) {
  void* handle = dlopen(name.c_str(), flags);
  if (handle == nullptr) {
    return Error{.kind = ErrorKind::not_found,
                 .attempted = "load " + name,
                 .path = {},
                 .offset = {},
                 .why = loader_text(),
                 .advice = "install it, or put its folder into LD_LIBRARY_PATH"};
  }
  return DynamicLibrary(name, handle);
}

void* DynamicLibrary::find(const char* symbol) const { return dlsym(handle_, symbol); }

Result<void> DynamicLibrary::fill(std::span<const Symbol> symbols) const {
  std::string missing;
  for (const Symbol& symbol : symbols) {
    *symbol.slot = find(symbol.name);
    if (*symbol.slot == nullptr)
      missing += (missing.empty() ? "" : ", ") + std::string(symbol.name);
  }
  if (missing.empty()) return {};
  return Error{.kind = ErrorKind::unsupported,
               .attempted = "use " + name_,
               .path = {},
               .offset = {},
               .why = "it does not export " + missing,
               .advice = "install a newer version of it"};
}

bool library_is_loaded(const char* soname) {
  void* handle = dlopen(soname, RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  dlclose(handle);  // gives back only the reference that the look took
  return true;
}

std::uint64_t libraries_loaded() {
  std::uint64_t count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<std::uint64_t*>(out) = info->dlpi_adds;
        return 1;  // the first entry tells it
      },
      &count);
  return count;
}

}  // namespace straightway::os
