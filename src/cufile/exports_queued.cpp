// Batches, streams, and transfers in their order.

#include "cufile/batch.hpp"
#include "cufile/edge.hpp"
#include "cufile/queued.hpp"

namespace straightway::cufile {
namespace {

using L = abi::Level1;

// With the batch of that token.
template <class F>
abi::Error guarded_batch(void* token, abi::Counter abi::Level1::* counter, F f) noexcept {
  return guarded_open(abi::invalid_context_error, [&](const std::shared_ptr<Session>& session) {
    const auto batch = session->batches->find(token);
    const abi::Code code = batch ? f(*batch) : abi::invalid_context_error;
    if (counter != nullptr) session->statistics.count_result(counter, code == abi::success);
    return code;
  });
}

abi::Error queue_transfer(const QueuedArguments& arguments) noexcept {
  abi::Error result;
  const abi::Error thrown = guarded([&] {
    const Opened opened = driver().use();
    result = opened.session ? queue(opened.session, arguments) : answer(opened.code);
    return abi::success;
  });
  return thrown.code == abi::success ? result : thrown;
}

}  // namespace
}  // namespace straightway::cufile

using namespace straightway::cufile;

STRAIGHTWAY_CUFILE abi::Error cuFileBatchIOSetUp(void** token, unsigned capacity) {
  return guarded_open(abi::invalid_value, [&](const std::shared_ptr<Session>& session) {
    const auto most = static_cast<std::uint64_t>(session->config.number(Key::io_batchsize));
    void* made = nullptr;
    if (token != nullptr && capacity > 0 && capacity <= most) {
      made = session->batches->add(std::make_shared<Batch>(*session, capacity));
    }
    session->statistics.count_result(&L::batch_setup, made != nullptr);
    if (made == nullptr) return abi::invalid_value;
    *token = made;
    return abi::success;
  });
}

STRAIGHTWAY_CUFILE abi::Error cuFileBatchIOSubmit(void* token, unsigned count,
                                                  abi::BatchEntry* entries, unsigned) {
  return guarded_batch(token, &L::batch_submit, [&](Batch& batch) {
    if (entries == nullptr) return abi::internal_batch_submit_error;
    return batch.submit({entries, count});
  });
}

STRAIGHTWAY_CUFILE abi::Error cuFileBatchIOGetStatus(void* token, unsigned least, unsigned* count,
                                                     abi::BatchEvent* events, timespec* timeout) {
  return guarded_batch(token, nullptr, [&](Batch& batch) {
    if (count == nullptr || events == nullptr || *count == 0 || least > *count) {
      return abi::invalid_value;
    }
    *count = static_cast<unsigned>(batch.collect(least, {events, *count}, timeout));
    return abi::success;
  });
}

STRAIGHTWAY_CUFILE abi::Error cuFileBatchIOCancel(void* token) {
  return guarded_batch(token, &L::batch_cancel, [](Batch& batch) {
    batch.cancel();
    return abi::success;
  });
}

STRAIGHTWAY_CUFILE void cuFileBatchIODestroy(void* token) {
  static_cast<void>(guarded_open(abi::success, [&](const std::shared_ptr<Session>& session) {
    const auto batch = session->batches->remove(token);
    session->statistics.count_result(&L::batch_destroy, batch != nullptr);
    if (batch) batch->finish();
    return abi::success;
  }));
}

STRAIGHTWAY_CUFILE abi::Error cuFileStreamRegister(void* stream, unsigned flags) {
  return guarded([&] {
    const Opened opened = driver().use();
    return opened.session ? opened.session->streams.add(stream, flags) : opened.code;
  });
}

STRAIGHTWAY_CUFILE abi::Error cuFileStreamDeregister(void* stream) {
  return guarded_open(abi::invalid_value, [&](const std::shared_ptr<Session>& session) {
    return session->streams.remove(stream);
  });
}

STRAIGHTWAY_CUFILE abi::Error cuFileReadAsync(void* token, void* base, std::size_t* size,
                                              off_t* file_offset, off_t* memory_offset,
                                              ssize_t* moved, void* stream) {
  return queue_transfer({Flow::read, token, base, size, file_offset, memory_offset, moved, stream});
}

STRAIGHTWAY_CUFILE abi::Error cuFileWriteAsync(void* token, void* base, std::size_t* size,
                                               off_t* file_offset, off_t* memory_offset,
                                               ssize_t* moved, void* stream) {
  return queue_transfer(
      {Flow::write, token, base, size, file_offset, memory_offset, moved, stream});
}
