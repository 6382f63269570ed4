// Handles, buffers, blocking transfers.

#include "cufile/edge.hpp"
#include "cufile/registration.hpp"
#include "cufile/transfer.hpp"
#include "cufile/vectored.hpp"

namespace straightway::cufile {
namespace {

// Sets errno where the outcome says so; else it is as before.
ssize_t conclude(const Outcome& outcome, int errno_before) {
  errno = outcome.result == -1 ? outcome.error_number : errno_before;
  return outcome.result;
}

template <class F>
ssize_t guarded_transfer(void* token, F f) noexcept {
  const int before = errno;
  Outcome outcome = fail_with(abi::internal_error);
  try {
    if (token == nullptr) return conclude(fail_with(EINVAL), before);
    const Opened opened = driver().use();
    const auto handle = opened.session ? opened.session->handles.find(token) : nullptr;
    outcome = handle ? f(*opened.session, *handle) : fail_with(abi::handle_not_registered);
  } catch (const std::bad_alloc&) {
    outcome = fail_with(ENOMEM);
  } catch (...) {
    outcome = fail_with(abi::internal_error);
  }
  return conclude(outcome, before);
}

ssize_t transfer(void* token, const Transfer& what) {
  return guarded_transfer(
      token, [&](Session& session, const Handle& handle) { return run(session, handle, what); });
}

ssize_t transfer_vectored(void* token, Flow flow, const abi::Piece* pieces, std::size_t count,
                          off_t file_offset) {
  return guarded_transfer(token, [&](Session& session, const Handle& handle) {
    return run_vectored(session, handle, flow, pieces, count, file_offset);
  });
}

}  // namespace
}  // namespace straightway::cufile

using namespace straightway::cufile;

STRAIGHTWAY_CUFILE abi::Error cuFileHandleRegister(void** token, abi::Descriptor* descriptor) {
  return guarded([&] {
    if (token == nullptr || descriptor == nullptr) return abi::invalid_value;
    const Opened opened = driver().use();
    if (!opened.session) return opened.code;
    return register_handle(*opened.session, *descriptor, token);
  });
}

STRAIGHTWAY_CUFILE void cuFileHandleDeregister(void* token) {
  static_cast<void>(guarded_open(abi::success, [&](const std::shared_ptr<Session>& session) {
    if (token != nullptr) deregister_handle(*session, token);
    return abi::success;
  }));
}

STRAIGHTWAY_CUFILE abi::Error cuFileBufRegister(const void* base, std::size_t size, int) {
  return guarded([&] {
    if (base == nullptr || size == 0) return abi::invalid_value;
    const Opened opened = driver().use();
    return opened.session ? register_buffer(*opened.session, base, size) : opened.code;
  });
}

STRAIGHTWAY_CUFILE abi::Error cuFileBufDeregister(const void* base) {
  const abi::Code closed = driver().was_open() ? abi::memory_not_registered : abi::driver_closing;
  return guarded_open(closed, [&](const std::shared_ptr<Session>& session) {
    return deregister_buffer(*session, base);
  });
}

STRAIGHTWAY_CUFILE ssize_t cuFileRead(void* token, void* base, std::size_t size, off_t file_offset,
                                      off_t memory_offset) {
  return transfer(token, {Flow::read, base, size, file_offset, memory_offset});
}

STRAIGHTWAY_CUFILE ssize_t cuFileWrite(void* token, const void* base, std::size_t size,
                                       off_t file_offset, off_t memory_offset) {
  return transfer(token, {Flow::write, const_cast<void*>(base), size, file_offset, memory_offset});
}

STRAIGHTWAY_CUFILE ssize_t cuFileReadv(void* token, const abi::Piece* pieces, std::size_t count,
                                       off_t file_offset, unsigned) {
  return transfer_vectored(token, Flow::readv, pieces, count, file_offset);
}

STRAIGHTWAY_CUFILE ssize_t cuFileWritev(void* token, const abi::Piece* pieces, std::size_t count,
                                        off_t file_offset, unsigned) {
  return transfer_vectored(token, Flow::writev, pieces, count, file_offset);
}
