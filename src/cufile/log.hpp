#pragma once
// cufile.log, in the documented line format. There is no file unless somebody asked for one.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <source_location>
#include <string>
#include <string_view>

#include "os/descriptor.hpp"

namespace straightway::cufile {

// In the order of how much they show.
enum class LogLevel : std::uint8_t { notice, error, warn, info, debug, trace };
LogLevel log_level(std::string_view word);  // error for a word that is none

class Log {
 public:
  // path: the file, or empty for none. limit_mb: the file starts anew when it is as large; -1:
  // never.
  Log(std::string path, LogLevel level, std::int64_t limit_mb);
  bool wants(LogLevel level) const { return !path_.empty() && level <= level_; }
  void write(LogLevel level, std::string_view text,
             std::source_location where = std::source_location::current());
  const std::string& path() const { return path_; }

 private:
  bool open_locked();

  const std::string path_;
  const LogLevel level_;
  const std::int64_t limit_bytes_;
  std::mutex mutex_;
  os::Descriptor fd_;
  std::int64_t written_bytes_ = 0;
  bool failed_ = false;
};

}  // namespace straightway::cufile
