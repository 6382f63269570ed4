#pragma once
// The registered files. What a program holds is a number that looks like no address, so a stale or
// invented one is found out and never followed.

#include <cstdint>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <unordered_map>

#include "api/open_file.hpp"
#include "cufile/abi.hpp"

namespace straightway::cufile {

struct Handle {
  Handle() = default;
  ~Handle() {
    if (file) file->close();
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void* token = nullptr;
  int fd = -1;                     // the caller's number
  int access = 0;                  // O_RDONLY, O_WRONLY, O_RDWR
  std::shared_ptr<OpenFile> file;  // its own descriptor; null for a file system in user space
  dev_t device = 0;                // which file it is
  ino_t inode = 0;
  bool userspace = false;
  const void* user = nullptr;        // of a file system in user space ...
  abi::FileOperations operations{};  // ... with its functions
};

class HandleTable {
 public:
  // Null where the number of the descriptor is registered already.
  void* add(const std::shared_ptr<Handle>& handle);
  bool has_fd(int fd) const;
  std::shared_ptr<Handle> find(const void* token) const;
  // Null where there is none (any more).
  std::shared_ptr<Handle> remove(const void* token);
  std::size_t size() const;

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<const void*, std::shared_ptr<Handle>> by_token_;
  std::unordered_map<int, const void*> by_fd_;
};

// What stands in the way of registering this descriptor; nullopt: nothing.
std::optional<abi::Code> refuse_descriptor(int fd);

}  // namespace straightway::cufile
