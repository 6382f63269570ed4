#pragma once
// The vendor's cuFile library as a stand-in that is told what to answer: a libcufile.so.0 with all
// symbols that its users look up. Reads and writes move bytes by pread and pwrite, to host memory
// or to the simulated GPU's. Of itself it is one that registers files without any driver, and
// copies. Its own calls of what it exports go by their names, as the real one's may: another
// libcufile of the process can answer them.
//
// Environment: FAKE_CUFILE_REGISTER, FAKE_CUFILE_OPEN (what cuFileHandleRegister and
// cuFileDriverOpen answer), FAKE_CUFILE_DIRECT (1: nvidia-fs is there, and transfers are direct),
// FAKE_CUFILE_P2PDMA (has_p2pdma), CUFILE_USE_PCIP2PDMA (true: its switch is on),
// FAKE_CUFILE_SILENT (1: copy_in_silence), FAKE_CUFILE_KERNEL_STATS (a path: kernel_stats,
// counting), FAKE_CUFILE_VERSION (1200), FAKE_CUFILE_REENTER (1: each read registers its file and
// reads a block of it once more, by those names), FAKE_CUFILE_WSL (1: dies in cuFileDriverOpen, as
// the real one does there).

#include <dlfcn.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace straightway::fakes {

// The ABI of cufile.h, in declarations of our own.
struct CufileError {
  int code;  // CUfileOpError: 0, or 5001 and up
  int cuda_code;
};
struct CufileDescriptor {
  int type;  // 1: a file descriptor
  union {
    int fd;
    void* handle;
  };
  const void* operations;
};
struct CufileProperties {
  unsigned major_version, minor_version;  // of nvidia-fs; 0.0: it is not there
  std::size_t poll_threshold_kib, max_direct_io_kib;
  unsigned status_flags, control_flags;
  unsigned features, max_device_cache_kib, per_buffer_cache_kib, max_pinned_kib;
  unsigned max_batch_io, max_batch_timeout_ms;
};
struct CufileBatchRequest {
  int mode;
  void* memory;
  off_t file_offset, memory_offset;
  std::size_t size;
  void* file;
  int opcode;  // 0 read, 1 write
  void* cookie;
};
struct CufileBatchEvent {
  void* cookie;
  int status;  // 0x10 complete, 0x40 failed
  std::size_t result;
};
static_assert(sizeof(CufileError) == 8 && sizeof(CufileDescriptor) == 24);
static_assert(sizeof(CufileProperties) == 56 && sizeof(CufileBatchRequest) == 64);
static_assert(sizeof(CufileBatchEvent) == 24);

}  // namespace straightway::fakes

// Name (after fake_cufile_) and signature.
#define FAKE_CUFILE_CONTROLS(X)                                                              \
  /* What cuFileHandleRegister answers from now on: 0, 5027, 5008, ... */                    \
  X(answer_register, void(int code))                                                         \
  /* What cuFileDriverOpen answers, and cuFileGetVersion tells. */                           \
  X(answer_open, void(int code))                                                             \
  X(version, void(int number))                                                               \
  /* Whether nvidia-fs is there, and transfers go by it (counted as nvfs, else posix). */    \
  X(direct, void(int on))                                                                    \
  /* Whether this machine does P2PDMA, which never shows in nvidia-fs's counters; 2: and the \
     file system does not, so that transfers fail (EREMOTEIO), nvidia-fs or not. */          \
  X(has_p2pdma, void(int how))                                                               \
  /* The switch of it, as settings of the program's own have it, and as it stands. */        \
  X(user_p2pdma, void(int on))                                                               \
  X(p2pdma_is_on, int())                                                                     \
  /* With it: what is said to be direct copies in silence (counted as posix). */             \
  X(copy_in_silence, void(int on))                                                           \
  /* With it: the library counts nvfs, and nvidia-fs sees nothing. */                        \
  X(lie, void(int on))                                                                       \
  /* Where nvidia-fs's counters are kept, as in /proc/driver/nvidia-fs/stats; null: nowhere. \
     counts: whether reads and writes are counted there. */                                  \
  X(kernel_stats, void(const char* path, int counts))                                        \
  /* What the device lets register: in all (its BAR1), and in one piece (else 5016). */      \
  X(bar_kib, void(std::size_t kib))                                                          \
  X(register_limit, void(std::size_t bytes))                                                 \
  /* The next `count` transfers answer `result`: -5xxx, or -1 with this errno, or short. */  \
  X(next_transfers, void(int count, ssize_t result, int errno_code))                         \
  /* The same, in these very words, and no byte moves. */                                    \
  X(answer_transfers, void(int count, ssize_t result, int errno_code))                       \
  /* What cuFileGetVersion and cuFileBufRegister answer: 0, or a code. */                    \
  X(answer_version, void(int code))                                                          \
  X(answer_buffer, void(int code))                                                           \
  /* Transfers wait inside the library until all are let go, or the first ones; how many     \
     wait now. */                                                                            \
  X(hold, void(int on))                                                                      \
  X(let_go, void(int count))                                                                 \
  X(held, std::uint64_t())                                                                   \
  /* How often memory was taken back while a transfer used it. */                            \
  X(torn, std::uint64_t())                                                                   \
  X(heal, void())                                                                            \
  /* What happened so far. */                                                                \
  X(calls, std::uint64_t())                                                                  \
  X(largest_call, std::uint64_t())                                                           \
  X(most_registered, std::uint64_t())                                                        \
  X(registrations, std::uint64_t())                                                          \
  X(deregistrations, std::uint64_t())                                                        \
  X(nvfs, std::uint64_t())                                                                   \
  X(p2pdma, std::uint64_t())                                                                 \
  X(posix, std::uint64_t())                                                                  \
  /* Whose code called cuFileRead or cuFileWrite last: the path of its library, or "". */    \
  X(caller, const char*())                                                                   \
  /* Calls of its own of what it exports that another library answered, and what the last    \
     read within a read came to. */                                                          \
  X(foreign_answers, std::uint64_t())                                                        \
  X(inner_result, ssize_t())                                                                 \
  /* Whether cuInit had been called when this was loaded. */                                 \
  X(loaded_after_init, int())                                                                \
  /* What lives now. */                                                                      \
  X(handles, std::uint64_t())                                                                \
  X(buffers, std::uint64_t())                                                                \
  X(open_count, std::uint64_t())

namespace straightway::fakes {

// The controls, found in the library of this path.
class FakeCufile {
 public:
  explicit FakeCufile(const std::string& path)
      : library_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr || dlsym(library_, "straightway_fake_cufile") == nullptr) {
      throw std::runtime_error(path + " is not the fake");
    }
#define FAKE_CUFILE_FILL(member, ...) \
  member = find<std::add_pointer_t<__VA_ARGS__>>("fake_cufile_" #member);
    FAKE_CUFILE_CONTROLS(FAKE_CUFILE_FILL)
#undef FAKE_CUFILE_FILL
  }

  template <class F>
  F find(const char* symbol) const {
    return reinterpret_cast<F>(dlsym(library_, symbol));
  }

#define FAKE_CUFILE_MEMBER(member, ...) std::add_pointer_t<__VA_ARGS__> member = nullptr;
  FAKE_CUFILE_CONTROLS(FAKE_CUFILE_MEMBER)
#undef FAKE_CUFILE_MEMBER

 private:
  void* library_;
};

}  // namespace straightway::fakes
