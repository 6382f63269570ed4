#include "cufile/log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "os/system_text.hpp"

namespace straightway::cufile {
namespace {

constexpr std::array<const char*, 6> words = {"NOTICE", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"};

// " 26-02-2026 03:08:04:646 "
std::string time_text() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  tm local{};
  ::localtime_r(&now.tv_sec, &local);
  return fmt::format(" {:02}-{:02}-{} {:02}:{:02}:{:02}:{:03}", local.tm_mday, local.tm_mon + 1,
                     local.tm_year + 1900, local.tm_hour, local.tm_min, local.tm_sec,
                     now.tv_nsec / 1'000'000);
}

// "src/cufile/handles.cpp" is "handles".
std::string_view place_of(const char* file) {
  const std::string_view name = os::base_name(file);
  return name.substr(0, name.find('.'));
}

// One line: what another program or a file's name put in must not forge a second one.
std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return line;
}

}  // namespace

LogLevel log_level(std::string_view word) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (word == words[i]) return static_cast<LogLevel>(i);
  }
  return LogLevel::error;
}

Log::Log(std::string path, LogLevel level, std::int64_t limit_mb)
    : path_(std::move(path)), level_(level), limit_bytes_(limit_mb < 0 ? -1 : limit_mb << 20) {}

bool Log::open_locked() {
  if (fd_ || failed_) return !failed_;
  fd_ = os::Descriptor(
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644));
  failed_ = !fd_;
  struct stat status{};
  if (fd_ && ::fstat(fd_.get(), &status) == 0) written_bytes_ = status.st_size;
  return !failed_;
}

void Log::write(LogLevel level, std::string_view text, std::source_location where) {
  if (!wants(level)) return;
  const std::string line =
      fmt::format("{} [pid={} tid={}] {:<6} {}:{} {}\n", time_text(), ::getpid(),
                  ::syscall(SYS_gettid), words[static_cast<std::size_t>(level)],
                  place_of(where.file_name()), where.line(), one_line(text));
  const std::lock_guard lock(mutex_);
  if (!open_locked()) return;
  if (limit_bytes_ >= 0 && written_bytes_ >= limit_bytes_ && ::ftruncate(fd_.get(), 0) == 0) {
    written_bytes_ = 0;
  }
  const ssize_t written = ::write(fd_.get(), line.data(), line.size());
  if (written > 0) written_bytes_ += written;
}

}  // namespace straightway::cufile
