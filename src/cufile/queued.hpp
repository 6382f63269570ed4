#pragma once
// cuFileReadAsync and cuFileWriteAsync: a transfer in the order of a stream.

#include "cufile/transfer.hpp"

namespace straightway::cufile {

// Where the arguments lie; they are read when the stream comes to it, unless it is registered with
// a promise that they hold already.
struct QueuedArguments {
  Flow flow = Flow::read;
  void* token = nullptr;
  void* base = nullptr;
  const std::size_t* size = nullptr;
  const off_t* file_offset = nullptr;
  const off_t* memory_offset = nullptr;
  ssize_t* moved = nullptr;
  void* stream = nullptr;
};

// Success: the stream has it, and *moved is the result once the stream is past it.
abi::Error queue(const std::shared_ptr<Session>& session, const QueuedArguments& arguments);

}  // namespace straightway::cufile
