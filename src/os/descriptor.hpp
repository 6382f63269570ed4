#pragma once
// A file descriptor that closes itself, and never one of 0 to 2: a program that closed its standard
// streams must not find our files there.

#include <utility>

namespace straightway::os {

class Descriptor {
 public:
  Descriptor() = default;
  // Takes fd over; a descriptor below 3 is moved up (and lost, as -1, when there is none left).
  explicit Descriptor(int fd) : fd_(above_standard_streams(fd)) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();
  int release() { return std::exchange(fd_, -1); }

  // Returns fd, or a duplicate >= 3 (close on exec) with fd closed; -1 and errno when that fails.
  static int above_standard_streams(int fd);

 private:
  int fd_ = -1;
};

}  // namespace straightway::os
