#pragma once
// What the simulated driver keeps. One mutex guards it all, and one condition tells of each change;
// bytes are copied outside of the mutex.

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "memory/cuda_types.hpp"

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace fake {

using namespace straightway::memory::cuda;

// A piece of queued work. `after`: work of other streams that comes first.
struct Work {
  std::function<void()> run;
  std::vector<std::shared_ptr<Work>> after;
  unsigned delay_us = 0;
  bool running = false;
  bool done = false;
};

struct ContextState;

struct StreamState {
  ContextState* context = nullptr;
  bool blocking = false;  // ordered with the legacy stream
  bool legacy = false;
  bool user_made = false;
  bool has_worker = false;
  bool closed = false;
  std::deque<std::shared_ptr<Work>> queue;
  std::shared_ptr<Work> last;
  CaptureStatus capture = capture_none;
  CaptureMode capture_mode = capture_global;
  std::thread::id capture_thread;
};

// Never freed, so that a stale handle is an error and no crash.
struct ContextState {
  int device = 0;
  bool destroyed = false;
  Status broken = success;  // sticky
  std::shared_ptr<StreamState> legacy;
  std::map<std::thread::id, std::shared_ptr<StreamState>> per_thread;
};

struct EventState {
  ContextState* context = nullptr;
  std::shared_ptr<Work> marker;
  bool captured = false;
};

// Two views of the same bytes: the device's addresses (PROT_NONE but for managed memory), and the
// CPU's.
struct Mapping {
  explicit Mapping(std::size_t size, bool managed);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  char* device = nullptr;
  char* shadow = nullptr;
  std::size_t size = 0;
};

enum class Kind { plain, pool, managed, segment };

struct Allocation {
  std::shared_ptr<Mapping> mapping;
  DevicePointer start = 0;
  std::size_t size = 0;
  int device = 0;
  Kind kind = Kind::plain;
  ContextState* context = nullptr;
};

// Pages held by references of their own, as a driver holds them: what becomes of the file then, or
// of the mapping, does not show in them. The kernel keeps such references for pages in a pipe.
class PageHold {
 public:
  // Null where the pages cannot be held.
  static std::shared_ptr<PageHold> make(void* at, std::size_t size);
  ~PageHold();
  PageHold(const PageHold&) = delete;
  PageHold& operator=(const PageHold&) = delete;
  // The bytes as the held pages have them now.
  bool read(std::size_t offset, char* to, std::size_t size) const;

 private:
  struct Pipe {
    int read_end = -1;
    int write_end = -1;
    std::size_t size = 0;
  };
  PageHold() = default;
  bool add_pipe(char* at, std::size_t size, std::size_t& held);
  std::vector<Pipe> pipes_;
};

struct Registration {
  std::size_t size = 0;
  ContextState* context = nullptr;
  bool owned = false;                        // cuMemHostAlloc
  std::shared_ptr<PageHold> hold = nullptr;  // of read-only registrations
};

struct Injected {
  int count = 0;
  Status status = success;
};

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  pid_t pid = 0;
  bool initialised = false;
  int devices = 2;
  unsigned longest_delay_us = 200;
  std::mt19937_64 random;
  std::vector<ContextState*> primaries;  // by device; null: not retained
  std::set<ContextState*> contexts;      // that ever were
  std::map<StreamState*, std::shared_ptr<StreamState>> streams;
  std::set<EventState*> events;
  std::map<DevicePointer, Allocation> allocations;
  std::map<std::uintptr_t, Registration> registrations;
  std::map<std::string, Injected> injected;
  std::map<std::string, std::uint64_t> calls_of;
  std::atomic<std::uint64_t> calls = 0;  // counted in a forked child too
  std::uint64_t pageable_copies = 0;
  std::uint64_t wrong_copies = 0;  // every so-manieth; 0: none
  std::uint64_t copies_to_device = 0;
  Status copy_error = success;
  int held = 0;
  int held_copies = 0;
};

using Lock = std::unique_lock<std::mutex>;

State& state();  // never freed
// The start of every driver function: counts the call and tells what it must answer at once.
// Nothing is touched in a forked child.
Status enter(const char* function);

std::vector<ContextState*>& context_stack();  // of this thread
CaptureMode& capture_mode();                  // of this thread

// All below: with the lock held.

// The current context; its status is not success where it is none, lost or broken.
struct Current {
  Status status;
  ContextState* context;
};
Current current_context();
ContextState* retain_primary(int device);
void destroy_context(Lock& lock, ContextState* context);

// The stream behind a handle, for the current context; null where the handle is not one.
std::shared_ptr<StreamState> find_stream(Stream handle, ContextState* context);
// As find_stream, and whether work may be queued there now.
Status stream_for_work(Stream handle, ContextState* context, std::shared_ptr<StreamState>& out);
std::shared_ptr<Work> submit(const std::shared_ptr<StreamState>& stream, std::function<void()> run,
                             unsigned delay_us);
void wait_for(Lock& lock, const std::shared_ptr<Work>& work);
void wait_for_context(Lock& lock, ContextState* context);
unsigned some_delay_us();
// What a call that no capture survives must answer; it invalidates those captures.
Status unsafe_call();

// The allocation that holds the address, or null.
const Allocation* find_allocation(DevicePointer address);
// Where the CPU finds size bytes from a device address on; null where they are not all there.
char* shadow_of(DevicePointer address, std::size_t size, std::shared_ptr<Mapping>& keep);
const Registration* find_registration(std::uintptr_t address, std::size_t size,
                                      std::uintptr_t* start = nullptr);
DevicePointer allocate(int device, std::size_t size, Kind kind, ContextState* context,
                       int segments = 1);
void free_memory_of(ContextState* context);

}  // namespace fake

// Returns from the driver function where it has to answer something else than its own result.
#define FAKE_ENTER(function) \
  if (const auto early = fake::enter(#function); early != success) return early
