#pragma once
// What the stand-in was told, and what it counts. One mutex guards it all.

#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "tests/fakes/fake_cufile.hpp"

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace fake {

using straightway::fakes::CufileBatchEvent;
using straightway::fakes::CufileBatchRequest;
using straightway::fakes::CufileDescriptor;
using straightway::fakes::CufileError;
using straightway::fakes::CufileProperties;

enum Code : int {
  success = 0,
  driver_not_initialised = 5001,
  invalid_value = 5022,
  already_registered = 5023,
  not_registered = 5024,
  handle_not_registered = 5027,
};

struct File {
  int fd;
};

struct State {
  std::mutex mutex;
  int register_answer = 0;
  bool direct = false;
  int told_transfers = 0;
  ssize_t told_result = 0;
  int told_errno = 0;
  std::uint64_t open_count = 0;
  std::uint64_t nvfs = 0;
  std::uint64_t posix = 0;
  std::set<File*> handles;
  std::map<const void*, std::size_t> buffers;
};

using Lock = std::lock_guard<std::mutex>;

State& state();  // never freed

enum class Way { read, write };
// One transfer, as cuFileRead and cuFileWrite answer.
ssize_t transfer(Way way, void* handle, void* memory, std::size_t size, off_t file_offset,
                 off_t memory_offset);

}  // namespace fake
