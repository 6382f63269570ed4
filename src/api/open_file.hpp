#pragma once
// An open file: its descriptors, its facts, and how many calls use it.

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "api/engine.hpp"
#include "memory/file_pins.hpp"
#include "os/descriptor.hpp"
#include "os/file_stamp.hpp"
#include "os/peer_facts.hpp"
#include "straightway/file.hpp"
#include "transport/cufile_library.hpp"
#include "transport/transport.hpp"

namespace straightway {

struct OpenFile {
  OpenFile() = default;
  ~OpenFile() { close_descriptors(); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  static Result<std::shared_ptr<OpenFile>> open(const std::string& path, std::string_view mode,
                                                const OpenOptions& options,
                                                std::shared_ptr<Engine> engine);
  static Result<std::shared_ptr<OpenFile>> adopt(int fd, const OpenOptions& options,
                                                 std::shared_ptr<Engine> engine);

  // Refuses new calls, waits for those that run (each has a FileUse), then closes the
  // descriptors. On the Context's own threads nothing can be waited for: there the last call that
  // ends closes them.
  void close();
  bool closed() const { return (users_.load() & closed_bit) != 0; }

  Result<std::uint64_t> size() const;
  Result<os::FileStamp> stamp() const;  // of a regular file
  // The descriptors; the O_DIRECT one is opened on first use. Where that is refused, direct_fd is
  // -1, the Context's sink is warned once, and direct_code() is the errno. Only a refusal that lies
  // in the file is remembered; a lack of descriptors or memory may pass.
  transport::FileRef ref(bool with_direct);
  int direct_code() const { return direct_code_.load(); }
  // Registers the O_DIRECT descriptor with the vendor's library, once; whether it is. Where that
  // was refused, vendor_code() is the library's answer, and the Context's sink is warned once.
  bool register_with(const std::shared_ptr<transport::CufileLibrary>& library);
  int vendor_code() const { return vendor_code_.load(); }
  // What it lies on; looked up once.
  os::FileStorage storage();
  // The pins of this file; null until make_pins() made them.
  std::shared_ptr<memory::FilePins> pins() const;
  std::shared_ptr<transport::CufileFile> cufile() const;
  // Made by the first call; an error where the file cannot be pinned safely. Not in a forked child.
  Result<std::shared_ptr<memory::FilePins>> make_pins(std::int32_t device);
  // May bytes move this way? The error says how to open the file instead.
  Result<void> allows(Direction direction) const;

  std::shared_ptr<Engine> engine;
  std::shared_ptr<const FileFacts> facts;
  std::shared_ptr<const Settings> settings;
  Door door = Door::straightway;
  int access = 0;  // O_RDONLY, O_WRONLY or O_RDWR

 private:
  friend class FileUse;
  // False once the file is closed. Each begin needs its end.
  bool begin();
  void end();
  static constexpr std::uint32_t closed_bit = std::uint32_t{1} << 31;
  static Result<std::shared_ptr<OpenFile>> finish(os::Descriptor fd, const std::string& path,
                                                  const OpenOptions& options,
                                                  std::shared_ptr<Engine> engine);
  void close_descriptors();
  void open_direct();
  int try_direct(const std::string& path);
  void warn_of_direct() const;

  os::Descriptor fd_;
  // No locks here: a fork may come while another thread holds one, and the child uses the file too
  // (but makes no pins).
  std::atomic<int> direct_fd_{-1};
  std::atomic<int> direct_code_{0};  // why it was refused last
  std::atomic<bool> warned_of_direct_{false};
  std::atomic<bool> descriptors_closed_{false};
  std::mutex pins_mutex_;
  std::atomic<bool> has_pins_{false};
  std::shared_ptr<memory::FilePins> pins_;
  std::mutex cufile_mutex_;
  std::atomic<bool> has_cufile_{false};
  std::shared_ptr<transport::CufileFile> cufile_;
  std::atomic<int> vendor_code_{0};
  std::atomic<std::uint32_t> users_{0};
  std::atomic<bool> last_closes_{false};
  std::atomic<bool> storage_known_{false};  // the two that follow; threads store the same
  std::atomic<std::uint64_t> storage_device_{0};
  std::atomic<std::uint64_t> storage_mount_{0};
  std::uint32_t generation_ = 0;
};

// One call or job that uses a file: while it lives, close() waits.
class FileUse {
 public:
  FileUse() = default;
  // Empty where there is no file, or a closed one.
  explicit FileUse(std::shared_ptr<OpenFile> file) {
    if (file && file->begin()) file_ = std::move(file);
  }
  ~FileUse() { reset(); }
  FileUse(FileUse&&) noexcept = default;
  FileUse& operator=(FileUse&& other) noexcept {
    if (this != &other) {
      reset();
      file_ = std::move(other.file_);
    }
    return *this;
  }

  // Another use of the file; not of a closed one, since this use keeps it open.
  FileUse again() const {
    FileUse use;
    if (file_) ++file_->users_;
    use.file_ = file_;
    return use;
  }

  explicit operator bool() const { return file_ != nullptr; }
  OpenFile* get() const { return file_.get(); }
  OpenFile& operator*() const { return *file_; }
  OpenFile* operator->() const { return file_.get(); }
  void reset() {
    if (const auto file = std::exchange(file_, nullptr)) file->end();
  }

 private:
  std::shared_ptr<OpenFile> file_;
};

}  // namespace straightway
