#pragma once
// What the stand-in was told, and what it counts. One mutex guards it all.

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

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
  io_not_supported = 5008,
  invalid_mapping_size = 5016,
  invalid_value = 5022,
  already_registered = 5023,
  not_registered = 5024,
  driver_already_open = 5026,
  handle_not_registered = 5027,
};

constexpr int usual_version = 1200;
constexpr std::size_t usual_bar_kib = std::size_t{256} << 20;

struct File {
  int fd;
};

struct Counter {
  std::uint64_t nvfs = 0;
  std::uint64_t p2pdma = 0;
  std::uint64_t posix = 0;
  std::uint64_t bytes = 0;
};

struct State {
  std::mutex mutex;
  int register_answer = 0;
  int open_answer = 0;
  int version = usual_version;
  bool direct = false;
  int has_p2pdma = 0;        // 2: and this file system has not
  bool user_p2pdma = false;  // the switch, by settings of the program's own
  bool p2pdma = false;       // and as it stands
  bool p2pdma_set = false;   // by the parameter: all that shows before the driver is open
  bool silent = false;
  bool lying = false;
  bool allow_compat = true;
  bool parallel_io = true;
  bool counting = false;
  int stats_level = 0;
  std::string kernel_path;
  bool kernel_counts = false;
  bool reenter = false;
  bool loaded_after_init = false;
  std::string caller;
  std::uint64_t version_calls = 0;
  std::uint64_t foreign_answers = 0;
  ssize_t inner_result = 0;
  std::size_t bar_kib = usual_bar_kib;
  std::size_t register_limit = SIZE_MAX;
  int told_transfers = 0;
  ssize_t told_result = 0;
  int told_errno = 0;
  bool told_verbatim = false;
  int version_answer = 0;
  int buffer_answer = 0;
  bool holding = false;
  std::uint64_t held = 0;
  std::uint64_t tickets = 0;
  std::uint64_t let_past = 0;
  std::condition_variable let_go;
  std::map<const void*, int> users;  // of buffers, by transfers under way
  std::uint64_t torn = 0;
  std::uint64_t deregistrations = 0;
  std::uint64_t open_count = 0;
  std::uint64_t calls = 0;
  std::uint64_t largest_call = 0;
  std::uint64_t registered = 0;
  std::uint64_t most_registered = 0;
  std::uint64_t registrations = 0;
  std::array<Counter, 2> counters;  // reads, writes
  std::array<Counter, 2> kernel;    // nvfs: calls that nvidia-fs saw
  std::set<File*> handles;
  std::map<const void*, std::size_t> buffers;
};

using Lock = std::unique_lock<std::mutex>;

State& state();  // never freed

enum class Way { read, write };
// Writes nvidia-fs's counters where they are kept. Under the lock.
void write_kernel_stats();
// Whether transfers go by P2PDMA, or else by nvidia-fs. Under the lock.
bool goes_by_p2pdma();
bool goes_by_nvfs();
// Remembers the library of this return address as the caller.
void note_caller(const void* return_address);
// Calls functions that it exports, by their names.
void call_itself(File* file, void* memory);
// One transfer, as cuFileRead and cuFileWrite answer.
ssize_t transfer(Way way, void* handle, void* memory, std::size_t size, off_t file_offset,
                 off_t memory_offset);

}  // namespace fake
