#pragma once
// An open file: its descriptors, its facts, and how many calls use it.

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "api/engine.hpp"
#include "os/descriptor.hpp"
#include "straightway/file.hpp"
#include "transport/transport.hpp"

namespace straightway {

struct OpenFile {
  static Result<std::shared_ptr<OpenFile>> open(const std::string& path, std::string_view mode,
                                                const OpenOptions& options,
                                                std::shared_ptr<Engine> engine);
  static Result<std::shared_ptr<OpenFile>> adopt(int fd, const OpenOptions& options,
                                                 std::shared_ptr<Engine> engine);

  // A call or job begins: false once the file is closed. Each begin needs its end.
  bool begin();
  void end();
  // Refuses new calls, waits for those that run, then closes the descriptors. On the thread that
  // drives transfers nothing can be waited for: there the last call that ends closes them.
  void close();
  bool closed() const { return (users_.load() & closed_bit) != 0; }

  Result<std::uint64_t> size() const;
  // The descriptors; the O_DIRECT one is opened on first use. Where that is refused, direct_fd is
  // -1, the Context's sink is warned once, and direct_code() is the errno.
  transport::FileRef ref(bool with_direct);
  int direct_code() const { return direct_code_; }
  // May bytes move this way? The error says how to open the file instead.
  Result<void> allows(Direction direction) const;

  std::shared_ptr<Engine> engine;
  std::shared_ptr<const FileFacts> facts;
  std::shared_ptr<const Settings> settings;
  Door door = Door::straightway;
  int access = 0;  // O_RDONLY, O_WRONLY or O_RDWR

 private:
  static constexpr std::uint32_t closed_bit = std::uint32_t{1} << 31;
  static Result<std::shared_ptr<OpenFile>> finish(os::Descriptor fd, const std::string& path,
                                                  const OpenOptions& options,
                                                  std::shared_ptr<Engine> engine);
  void close_descriptors();
  void open_direct();
  int try_direct(const std::string& path);
  void warn_of_direct() const;

  os::Descriptor fd_;
  os::Descriptor direct_fd_;
  std::once_flag direct_tried_;
  int direct_code_ = 0;
  std::once_flag closed_once_;
  std::atomic<std::uint32_t> users_{0};
  std::atomic<bool> last_closes_{false};
  std::uint32_t generation_ = 0;
};

}  // namespace straightway
