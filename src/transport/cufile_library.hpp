#pragma once
// The vendor's cuFile library, loaded at run time: files and memory registered there, transfers by
// it, and what it and the kernel module counted.
//
// Every call may be made from any thread. Nothing is called unless cuInit succeeded before.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "os/dynamic_library.hpp"
#include "straightway/result.hpp"
#include "straightway/route.hpp"

namespace straightway::transport {

// Counters of one direction at one moment.
struct CufileCounts {
  // Whether no call of ours was under way while the counters were read.
  bool quiet = false;
  std::uint64_t calls = 0;  // of ours, through this library
  std::uint64_t bytes = 0;  // that they moved
  bool kernel_counts = false;
  std::uint64_t kernel_calls = 0;
  std::uint64_t kernel_failed = 0;
  std::uint64_t kernel_mib = 0;
  bool cufile_counts = false;
  std::uint64_t nvfs = 0;
  std::uint64_t p2pdma = 0;
  std::uint64_t posix = 0;
  bool knows_p2pdma = false;  // of this version, which may take it without a word
  bool p2pdma_on = false;     // its switch, when the library was opened
};

// What becomes of the library's switch of P2PDMA.
struct P2pdmaWish {
  bool on = false;       // it is switched on
  bool by_user = false;  // the program's own settings have it on, which shows once it is open
};

class CufileLibrary {
 public:
  // Loads the library and opens its driver; switches P2PDMA on where it is asked to and nobody
  // opened the library before. An error where it is too old, Straightway's own, or has neither
  // nvidia-fs nor P2PDMA: newer ones register files without any driver, and then copy. root: where
  // /proc is, in tests.
  static Result<std::shared_ptr<CufileLibrary>> open(const std::string& path, P2pdmaWish wish,
                                                     const std::string& root = "");
  // Closes what it opened. No transfer is under way, and no file registered.
  ~CufileLibrary();
  CufileLibrary(const CufileLibrary&) = delete;
  CufileLibrary& operator=(const CufileLibrary&) = delete;

  int version() const { return version_; }  // 1150 is 1.15
  // Whether it cuts requests by its own settings: it was open before us, or takes no word.
  bool cuts() const { return cuts_; }
  // Whether it goes by P2PDMA, which it takes before nvidia-fs.
  bool p2pdma() const { return p2pdma_; }

  // The handle. An error of origin cufile has its code.
  Result<void*> register_file(int direct_fd);
  void deregister_file(void* handle);

  // One transfer to or from device memory: bytes moved, -errno, or -CUfileOpError.
  std::int64_t move(Direction direction, void* handle, std::uint64_t address,
                    std::uint64_t size_bytes, std::uint64_t file_offset);

  // Registers the first bytes of a range of device memory: all of them, fewer where the window that
  // the device shows (BAR1) has no more room or where they are registered already for another
  // transfer, 0 where none can be had. Each call needs its deregister_memory, also after 0: until
  // then nobody else registers this address, and takes it back under the transfer.
  std::uint64_t register_memory(std::int32_t device, std::uint64_t address,
                                std::uint64_t size_bytes);
  void deregister_memory(std::int32_t device, std::uint64_t address);

  CufileCounts counts(Direction direction);

  // Whether this thread is inside the library right now. What it calls then must not come back.
  static bool inside();

 private:
  struct Functions;
  struct Window {  // what a device lets register
    std::uint64_t limit_bytes = 0;
    std::uint64_t used_bytes = 0;
    std::uint64_t largest_bytes = 0;  // that was not refused
  };
  struct Stretch {  // of memory that is registered, or with 0 bytes: used without
    std::uint64_t size_bytes = 0;
    std::uint32_t users = 1;
    bool settled = false;  // neither being registered nor being taken back
  };
  struct Tally {
    std::atomic<std::uint64_t> begun{0};
    std::atomic<std::uint64_t> done{0};
    std::atomic<std::uint64_t> bytes{0};
  };
  CufileLibrary(os::DynamicLibrary library, std::string root);
  Result<void> find_functions();
  Result<void> open_driver(P2pdmaWish wish);
  bool has_p2pdma(unsigned features) const;
  void start_statistics();
  Window& window(std::int32_t device);
  std::uint64_t take_room(std::int32_t device, std::uint64_t size_bytes);
  void give_room(std::int32_t device, std::uint64_t size_bytes, std::uint64_t largest_bytes);
  std::uint64_t register_what_fits(std::int32_t device, std::uint64_t address,
                                   std::uint64_t size_bytes);
  void read_cufile_counts(Direction direction, CufileCounts& counts);
  Tally& tally(Direction direction) { return direction == Direction::read ? reads_ : writes_; }

  const os::DynamicLibrary library_;
  const std::string root_;
  std::unique_ptr<Functions> functions_;
  int version_ = 0;
  bool opened_ = false;
  bool cuts_ = true;
  bool counts_ = false;
  bool p2pdma_ = false;
  std::uint64_t pinned_limit_bytes_ = 0;
  std::mutex mutex_;  // of what follows
  std::map<std::int32_t, Window> windows_;
  // By address: the library knows one registration of each, and transfers from the same memory to
  // two files may be under way at once.
  std::map<std::uint64_t, Stretch> stretches_;
  std::condition_variable settled_;
  Tally reads_;
  Tally writes_;
};

// A file that is registered with the library. close() (and the destructor) takes it back; then no
// transfer uses it any more.
class CufileFile {
 public:
  static Result<std::shared_ptr<CufileFile>> make(std::shared_ptr<CufileLibrary> library,
                                                  int direct_fd);
  ~CufileFile() { close(); }
  CufileFile(const CufileFile&) = delete;
  CufileFile& operator=(const CufileFile&) = delete;
  void* handle() const { return handle_; }
  CufileLibrary& library() const { return *library_; }
  void close();
  // In a forked child the handle is the parent's.
  void abandon() { handle_ = nullptr; }

 private:
  CufileFile(std::shared_ptr<CufileLibrary> library, void* handle)
      : library_(std::move(library)), handle_(handle) {}
  const std::shared_ptr<CufileLibrary> library_;
  void* handle_;
};

}  // namespace straightway::transport
