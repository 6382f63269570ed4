#pragma once
// The edge to C: nothing is thrown into the caller, and errno changes only where a call says so.

#include <cerrno>
#include <new>

#include "cufile/abi.hpp"
#include "cufile/driver.hpp"

#define STRAIGHTWAY_CUFILE extern "C" __attribute__((visibility("default")))

namespace straightway::cufile {

// Made on first use, left alone at exit and after it.
Driver& driver();

inline abi::Error answer(abi::Code code) { return {code, 0}; }

// Runs f, which gives a code or a whole answer.
template <class F>
abi::Error guarded(F f) noexcept {
  const int before = errno;
  abi::Code code = abi::internal_error;
  try {
    code = f();
  } catch (const std::bad_alloc&) {
    code = abi::nomem_error;
  } catch (...) {
    code = abi::internal_error;
  }
  errno = before;
  return answer(code);
}

// With the session, which is opened where there is none.
template <class F>
abi::Error guarded_use(F f) noexcept {
  return guarded([&] {
    const Opened opened = driver().use();
    return opened.session ? f(*opened.session) : opened.code;
  });
}

// With the session; `closed` where there is none.
template <class F>
abi::Error guarded_open(abi::Code closed, F f) noexcept {
  return guarded([&] {
    const auto session = driver().session();
    return session ? f(session) : closed;
  });
}

}  // namespace straightway::cufile
