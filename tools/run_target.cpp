#include "run_target.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "again.hpp"
#include "arguments.hpp"
#include "os/descriptor.hpp"
#include "os/system_text.hpp"

namespace straightway::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* cufile_name = "libcufile.so.0";
constexpr const char* audit_name = "libstraightway-audit.so";
constexpr std::string_view audit_key = "LD_AUDIT=";
constexpr std::string_view place_key = "STRAIGHTWAY_RUN=";
// A script's interpreter may be a script.
constexpr int interpreter_depth = 4;

bool has_both(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / cufile_name, ignored) &&
         fs::is_regular_file(folder / audit_name, ignored);
}

bool is_executable(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

// The words after "#!" in a script's first line.
std::vector<std::string> interpreter_of(std::string_view head) {
  std::vector<std::string> words;
  if (!head.starts_with("#!")) return words;
  std::string_view line = head.substr(2, head.find('\n') - 2);
  while (!line.empty()) {
    const auto word = os::take_field(line, ' ');
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

// The file that runs in place of a script; empty where it cannot be told.
std::string follow_script(const std::vector<std::string>& words) {
  const bool by_env = fs::path(words.front()).filename() == "env" && words.size() > 1;
  if (!by_env) return words.front();
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool passed_over = words[i].starts_with('-') || words[i].find('=') != std::string::npos;
    if (!passed_over) return find_program(words[i]);
  }
  return "";
}

std::string obstacle_in_elf(int fd, const Elf64_Ehdr& header, const std::string& path) {
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return "it is a 32-bit program";
  const std::string name = fs::path(path).filename();
  for (int i = 0; i < std::min<int>(header.e_phnum, 256); ++i) {
    Elf64_Phdr segment{};
    const auto place = header.e_phoff + static_cast<std::uint64_t>(i) * sizeof(segment);
    if (::pread(fd, &segment, sizeof(segment), static_cast<off_t>(place)) !=
        static_cast<ssize_t>(sizeof(segment))) {
      return "";
    }
    if (segment.p_type != PT_INTERP) continue;
    std::array<char, 256> loader{};
    const auto got =
        ::pread(fd, loader.data(), loader.size() - 1, static_cast<off_t>(segment.p_offset));
    const bool musl = got > 0 && std::strstr(loader.data(), "ld-musl") != nullptr;
    return musl ? "its loader (musl's) takes no audit library" : "";
  }
  if (name.starts_with("ld-") || name.starts_with("ld.")) return "";  // the loader itself
  return "it is statically linked";
}

std::string obstacle_of(const std::string& path, int depth);

std::string obstacle_in_file(int fd, const std::string& path, int depth) {
  std::array<char, 256> head{};
  const ssize_t got = ::pread(fd, head.data(), head.size() - 1, 0);
  if (got < static_cast<ssize_t>(EI_NIDENT)) return "";
  const auto words = interpreter_of({head.data(), static_cast<std::size_t>(got)});
  if (!words.empty()) return depth == 0 ? "" : obstacle_of(follow_script(words), depth - 1);
  Elf64_Ehdr header{};
  std::memcpy(&header, head.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "";
  return obstacle_in_elf(fd, header, path);
}

std::string obstacle_of(const std::string& path, int depth) {
  const os::Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status{};
  if (path.empty() || ::stat(path.c_str(), &status) != 0) return "";
  const bool other_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != ::geteuid();
  const bool other_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != ::getegid();
  if (other_user || other_group) {
    return "it runs with other privileges (setuid or setgid), so its loader takes no audit library";
  }
  if (::geteuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
    return "it has file capabilities, so its loader takes no audit library";
  }
  return fd ? obstacle_in_file(fd.get(), path, depth) : "";
}

// Ours first; what was there stays, once.
std::string audit_entry(const std::string& audit, std::string_view before) {
  std::string entry = std::string(audit_key) + audit;
  while (!before.empty()) {
    const auto library = os::take_field(before, ':');
    if (!library.empty() && library != audit) entry += ":" + std::string(library);
  }
  return entry;
}

}  // namespace

Result<RunLibraries> find_run_libraries() {
  const fs::path folder = fs::path(own_path()).parent_path();
  std::string places;
  for (const fs::path& candidate : {folder.parent_path() / "cufile",
                                    folder / STRAIGHTWAY_BIN_TO_LIB / "straightway" / "cufile"}) {
    const fs::path place = candidate.lexically_normal();
    if (has_both(place) && place.string().find(':') == std::string::npos) {
      return RunLibraries{place / cufile_name, place / audit_name};
    }
    places += (places.empty() ? "" : ", ") + place.string();
  }
  Error error = usage_error("run a program on Straightway's libcufile.so.0",
                            "that library and libstraightway-audit.so are not beside this command "
                            "line (in " +
                                places + ")",
                            "use the command line that was installed with them");
  error.kind = ErrorKind::not_found;
  return error;
}

std::string find_program(const std::string& word) {
  if (word.find('/') != std::string::npos) return word;
  const char* search = std::getenv("PATH");
  std::string_view rest = search != nullptr ? search : "/bin:/usr/bin";
  while (!rest.empty()) {
    const auto folder = os::take_field(rest, ':');
    std::string path = (folder.empty() ? "." : std::string(folder)) + "/" + word;
    if (is_executable(path)) return path;
  }
  return "";
}

std::string obstacle_of(const std::string& path) { return obstacle_of(path, interpreter_depth); }

std::vector<std::string> run_environment(const RunLibraries& libraries, const std::string& place) {
  std::string_view audit_before;
  std::vector<std::string> environment;
  for (const std::string& entry : own_environment()) {
    if (entry.starts_with(place_key)) continue;
    if (!entry.starts_with(audit_key)) environment.push_back(entry);
  }
  if (const char* before = std::getenv("LD_AUDIT")) audit_before = before;
  environment.push_back(audit_entry(libraries.audit, audit_before));
  environment.push_back(std::string(place_key) + place);
  return environment;
}

}  // namespace straightway::tools
