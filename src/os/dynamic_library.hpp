#pragma once
// A shared library opened at run time, and a table of the symbols that are wanted from it.

#include <span>
#include <string>

#include "straightway/result.hpp"

namespace straightway::os {

// One wanted symbol: its exported name, and the function pointer to fill.
struct Symbol {
  const char* name;
  void** slot;
};

// Stays loaded until the process ends: drivers and their threads do not survive dlclose.
class DynamicLibrary {
 public:
  // name is a SONAME to search for, or an absolute path. not_found where there is none; the error
  // holds the loader's own words.
  static Result<DynamicLibrary> open(const std::string& name);

  // By absolute path, and so that its own calls to what it exports stay in it: RTLD_LOCAL alone
  // lets another library of the process answer them. The loader is given another spelling of the
  // path: where `straightway run` has sent a program's search for this path to our libcufile, the
  // path itself has become a name of ours.
  static Result<DynamicLibrary> open_isolated(const std::string& path);

  // Null where it is not exported.
  void* find(const char* symbol) const;
  // Fills every slot. unsupported, naming all that are missing, where any is; then no slot may be
  // called.
  Result<void> fill(std::span<const Symbol> symbols) const;
  const std::string& name() const { return name_; }

 private:
  static Result<DynamicLibrary> load(const std::string& name, int flags);
  DynamicLibrary(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}
  std::string name_;
  void* handle_;
};

// Whether a library of this SONAME is in the process already; loads nothing.
bool library_is_loaded(const char* soname);

// Counts the libraries that were ever loaded into the process: as long as it stays the same, so
// does the answer `false` of library_is_loaded. Tens of nanoseconds, where that takes microseconds.
std::uint64_t libraries_loaded();

}  // namespace straightway::os
