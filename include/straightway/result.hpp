#pragma once
// Errors as values: Result<T> is a T or an Error. Nothing in the library throws for an expected
// failure; a caller that prefers exceptions calls Result::value(), which throws ErrorException.

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace straightway {

// What kind of failure it is. Callers branch on this; people read Error::message().
enum class ErrorKind : std::uint8_t {
  invalid_argument,   // the call itself is wrong: size, offset, option, memory, setting
  not_found,          // no such file
  wrong_file_type,    // a directory, FIFO, socket or device where a file is needed
  permission,         // refused by the system, or by the mode that the file was opened with
  closed,             // the file, job or context was closed
  no_space,           // ENOSPC, EDQUOT, EFBIG
  out_of_memory,      // host, pinned or device memory
  too_many_files,     // EMFILE, ENFILE
  io,                 // the system reported an I/O error
  short_transfer,     // exact=true and the file ended first
  route_refused,      // the policy allows only routes that are not available here
  evidence_missing,   // evidence="observed" was demanded and nothing independent confirms
  device,             // the GPU or its driver reported an error
  unsupported,        // this build, machine or space cannot do it
  cancelled,          // by the caller
  deadline_exceeded,  // the caller's deadline passed
  forked,             // a GPU, or a job, of the parent process was used in a forked child
};

// Who reported Error::code.
enum class ErrorOrigin : std::uint8_t { straightway, system, cuda, cufile };

// One failure, complete enough to act on: what was attempted, on what, why it failed, what to do.
struct Error {
  ErrorKind kind = ErrorKind::io;
  ErrorOrigin origin = ErrorOrigin::straightway;
  int code = 0;           // errno, CUresult or CUfileOpError, by origin; 0 where there is none
  std::string attempted;  // up to the file's name: "read 4096 bytes of"
  std::string path;       // the file, or empty
  std::optional<std::uint64_t> offset;  // file offset, bytes
  std::string why;                      // "Input/output error"
  std::string advice;                   // what to do about it, or empty

  // "cannot read 4096 bytes of 'a.bin' at offset 0: Input/output error [EIO]; check the drive"
  std::string message() const;
  bool operator==(const Error&) const = default;
};

const char* to_string(ErrorKind kind);
const char* to_string(ErrorOrigin origin);

// Thrown by Result::value() alone.
class ErrorException : public std::exception {
 public:
  explicit ErrorException(Error error) : error_(std::move(error)), text_(error_.message()) {}
  const char* what() const noexcept override { return text_.c_str(); }
  const Error& error() const { return error_; }

 private:
  Error error_;
  std::string text_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Throws ErrorException where there is none.
  T& value() & { return check(), *std::get_if<0>(&state_); }
  const T& value() const& { return check(), *std::get_if<0>(&state_); }
  T value() && { return check(), std::move(*std::get_if<0>(&state_)); }

  // Only after ok() (value) or !ok() (error).
  T& operator*() { return *std::get_if<0>(&state_); }
  const T& operator*() const { return *std::get_if<0>(&state_); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  Error& error() { return *std::get_if<1>(&state_); }
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  void check() const {
    if (!ok()) throw ErrorException(error());
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  void value() const {
    if (!ok()) throw ErrorException(*error_);
  }
  Error& error() { return *error_; }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace straightway
