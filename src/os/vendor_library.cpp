// Looks for the vendor's libcufile without loading it: loading has side effects, and one version
// hangs when no GPU was initialised before.

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "os/machine_facts.hpp"
#include "os/system_text.hpp"

namespace straightway::os {
namespace {

constexpr std::string_view library = "/libcufile.so.0";
// Where the dynamic symbols lie, near the start; all of it would be megabytes.
constexpr std::size_t symbols_limit_bytes = 256 << 10;

// Ours exports a symbol of this name, by which it is known.
constexpr std::string_view own_mark("\0straightway_cufile\0", 20);

}  // namespace

bool is_vendor_library(const std::string& path) {
  std::error_code ignored;
  // Reading from a pipe would take what is another's.
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  const auto bytes = read_text(path, symbols_limit_bytes);
  return bytes &&
         bytes->starts_with(
             "\x7f"
             "ELF") &&
         bytes->find(own_mark) == std::string::npos;
}

namespace {

// Paths are plain strings in the cache, each ended by a NUL.
void add_cached(std::vector<std::string>& candidates, const std::string& root) {
  const auto cache = read_text(root + "/etc/ld.so.cache", 32 << 20).value_or("");
  const std::string wanted = std::string(library) + '\0';
  for (auto at = cache.find(wanted); at != std::string::npos; at = cache.find(wanted, at + 1)) {
    const auto before = at == 0 ? std::string::npos : cache.rfind('\0', at);
    const auto begin = before == std::string::npos ? 0 : before + 1;
    candidates.push_back(root + cache.substr(begin, at - begin) + std::string(library));
  }
}

void add_toolkits(std::vector<std::string>& candidates, const std::string& root) {
  std::error_code ignored;
  std::vector<std::string> toolkits;
  for (std::filesystem::directory_iterator at(root + "/usr/local", ignored), end;
       !ignored && at != end; at.increment(ignored)) {
    if (at->path().filename().string().starts_with("cuda")) toolkits.push_back(at->path());
  }
  std::ranges::sort(toolkits);  // "cuda", the one in force, comes before "cuda-12.8"
  for (const std::string& toolkit : toolkits) {
    candidates.push_back(toolkit + "/lib64" + std::string(library));
  }
}

}  // namespace

std::string find_vendor_library(const std::string& ld_library_path, const std::string& root) {
  std::vector<std::string> candidates;
  std::string_view rest = ld_library_path;
  while (!rest.empty()) {
    const auto folder = take_field(rest, ':');
    // A relative one would mean another library in another working directory.
    if (folder.starts_with('/'))
      candidates.push_back(root + std::string(folder) + std::string(library));
  }
  add_cached(candidates, root);
  add_toolkits(candidates, root);
  constexpr std::array<const char*, 5> folders = {"/usr/lib/x86_64-linux-gnu",
                                                  "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                                                  "/usr/lib", "/usr/local/lib"};
  for (const char* folder : folders) candidates.push_back(root + folder + std::string(library));
  const auto found = std::ranges::find_if(candidates, is_vendor_library);
  return found == candidates.end() ? "" : *found;
}

}  // namespace straightway::os
